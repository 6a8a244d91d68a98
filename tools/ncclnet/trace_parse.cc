// SPDX-License-Identifier: Apache-2.0
//
// One rank's file into lines. A line is `<us> <thread> <call> <arguments> = <result> <outputs>`;
// both halves are words, of which those with a `=` are named values. Ids count from 0 in the order
// of appearance, so a table by id is dense, and an id that jumps is a broken file.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "tools/common/numbers.h"
#include "tools/ncclnet/board.h"
#include "tools/ncclnet/trace.h"

namespace weft::ncclnet {
namespace {

using tools::parse_integer;
using Words = std::vector<std::string_view>;

constexpr int kMaxId = 1 << 20;

struct Split {
  Words in, out;                                     // words without a '='
  std::map<std::string_view, std::string_view> named;
};

std::optional<Call> call_named(std::string_view name) {
  for (size_t i = 1; i < kCallNames.size(); ++i) {
    if (kCallNames[i] == name) return static_cast<Call>(i);
  }
  return std::nullopt;
}

Split split(std::string_view text) {
  Split result;
  bool after = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (word == "=") after = true;
    else if (equals != std::string_view::npos) {
      result.named[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      (after ? result.out : result.in).push_back(word);
    }
  }
  return result;
}

// Fills in one TraceLine; the first thing that is wrong stays in `error`.
class LineParser {
 public:
  LineParser(const Split& words, TraceLine& line) : words_(words), line_(line) {}

  std::string parse();

 private:
  void wrong(const std::string& what) {
    if (error_.empty()) error_ = what;
  }
  std::string_view in(size_t i) {
    if (i < words_.in.size()) return words_.in[i];
    wrong("an argument is missing");
    return {};
  }
  std::string_view out(size_t i) {
    if (i < words_.out.size()) return words_.out[i];
    wrong("an output is missing");
    return {};
  }
  int id(char kind, std::string_view word) {
    const auto value = word.size() > 1 && word[0] == kind
                           ? parse_integer<int>(word.substr(1)) : std::nullopt;
    if (value && *value >= 0 && *value < kMaxId) return *value;
    wrong(fmt::format("'{}' is no {}<number>", word, kind));
    return -1;
  }
  void comm(std::string_view word) {
    line_.comm_kind = word.empty() ? '?' : word[0];
    if (line_.comm_kind != 's' && line_.comm_kind != 'r') wrong(fmt::format("'{}' is no comm", word));
    else line_.comm = id(line_.comm_kind, word);
  }
  template <class T>
  T named(std::string_view key, int base = 10) {
    const auto it = words_.named.find(key);
    const auto value = it == words_.named.end() ? std::nullopt : parse_integer<T>(it->second, base);
    if (!value) wrong(fmt::format("{}= is missing or no number", key));
    return value.value_or(T{});
  }
  void handle() {
    const auto it = words_.named.find("h");
    if (it == words_.named.end() || it->second.empty() || it->second.size() > 32) wrong("h= is missing");
    else line_.handle = std::string(it->second);
  }
  void part(std::string_view where, std::string_view size, std::string_view tag);
  void parts_from(size_t first);
  void attributes(std::string_view key, int64_t* to);
  void request_output();
  void set_up();
  void data();

  const Split& words_;
  TraceLine& line_;
  std::string error_;
};

void LineParser::part(std::string_view where, std::string_view size, std::string_view tag) {
  TracePart part;
  const size_t plus = where.find('+');
  const auto offset = plus == std::string_view::npos
                          ? std::nullopt : parse_integer<uint64_t>(where.substr(plus + 1));
  const auto bytes = parse_integer<uint64_t>(size);
  const auto number = parse_integer<int>(tag);
  if (!offset || !bytes || !number) {
    wrong(fmt::format("'{}' is no m<k>+<offset> with a size and a tag", where));
    return;
  }
  part.mhandle = id('m', where.substr(0, plus));
  part.offset = *offset;
  part.size = *bytes;
  part.tag = *number;
  line_.parts.push_back(part);
}

// Words such as m2+0:1048576:1 (irecv) or m2+0:131072 (iflush).
void LineParser::parts_from(size_t first) {
  for (size_t i = first; i < words_.in.size(); ++i) {
    const std::string_view word = words_.in[i];
    const size_t one = word.find(':');
    if (one == std::string_view::npos) {
      if (word == "opt") line_.optional = true;
      continue;
    }
    const size_t two = word.find(':', one + 1);
    const bool tagged = two != std::string_view::npos;
    part(word.substr(0, one), word.substr(one + 1, tagged ? two - one - 1 : two),
         tagged ? word.substr(two + 1) : std::string_view("0"));
  }
  const auto count = named<size_t>("n");
  if (count != line_.parts.size() || count == 0 || count > kMaxParts) wrong("n= and the parts differ");
}

void LineParser::attributes(std::string_view key, int64_t* to) {
  const auto it = words_.named.find(key);
  std::string_view text = it == words_.named.end() ? std::string_view() : it->second;
  for (int i = 0; i < 4; ++i) {
    const size_t end = std::min(text.find(','), text.size());
    const auto value = parse_integer<int32_t>(text.substr(0, end));
    if (!value) wrong(fmt::format("{}= is not four numbers", key));
    to[i] = value.value_or(0);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

void LineParser::request_output() {
  line_.null_output = out(1) == "-";
  if (!line_.null_output) line_.request = id('q', out(1));
}

void LineParser::set_up() {
  switch (line_.call) {
    case Call::kInit:
      line_.comm_id = named<uint64_t>("comm", 16);
      line_.traffic_class = named<int>("tc");
      line_.profiler = named<int>("prof") != 0;
      line_.context = id('c', out(1));
      break;
    case Call::kGetProperties: line_.device = named<int>("dev"); break;
    case Call::kListen:
      line_.context = id('c', in(3));
      line_.device = named<int>("dev");
      line_.listen = id('l', out(1));
      handle();
      break;
    case Call::kConnect:
    case Call::kAccept:
      if (line_.call == Call::kConnect) {
        line_.context = id('c', in(3));
        line_.device = named<int>("dev");
        handle();
      } else {
        line_.listen = id('l', in(3));
      }
      line_.comm_kind = line_.call == Call::kConnect ? 's' : 'r';
      line_.null_output = out(1) == "-";
      if (!line_.null_output) line_.comm = id(line_.comm_kind, out(1));
      break;
    case Call::kCloseListen: line_.listen = id('l', in(3)); break;
    case Call::kSetNetAttr:
      line_.context = id('c', in(3));
      attributes("s", line_.send_attr);
      attributes("r", line_.recv_attr);
      line_.op = named<uint32_t>("op", 16);
      line_.algo = named<uint32_t>("algo", 16);
      line_.proto = named<uint32_t>("proto", 16);
      break;
    case Call::kFinalize: line_.context = id('c', in(3)); break;
    default: break;
  }
}

void LineParser::data() {
  switch (line_.call) {
    case Call::kRegMr:
    case Call::kRegMrDmaBuf:
      comm(in(3));
      line_.region = id('b', in(4));
      line_.size = named<uint64_t>("size");
      line_.type = named<int>("type");
      line_.base = named<uint64_t>("base", 16);
      line_.mhandle = id('m', out(1));
      if (line_.size > (uint64_t{1} << 40) || line_.base + line_.size < line_.base) wrong("size= is too large");
      break;
    case Call::kDeregMr:
      comm(in(3));
      line_.mhandle = id('m', in(4));
      break;
    case Call::kIsend: {
      comm(in(3));
      const auto tag = words_.named.find("tag");
      part(in(4), in(5), tag == words_.named.end() ? std::string_view() : tag->second);
      request_output();
      break;
    }
    case Call::kIrecv:
    case Call::kIflush:
      comm(in(3));
      parts_from(4);
      request_output();
      break;
    case Call::kTest:
      line_.request = id('q', in(3));
      if (out(1) != "done") wrong("a test that is not done");
      for (size_t i = 2; i < words_.out.size(); ++i) {
        if (words_.out[i] == "nosize") line_.no_sizes = true;
        else if (const auto size = parse_integer<int64_t>(words_.out[i])) line_.sizes.push_back(*size);
        else wrong(fmt::format("'{}' is no size", words_.out[i]));
      }
      break;
    case Call::kCloseSend:
    case Call::kCloseRecv:
      comm(in(3));
      break;
    default: break;
  }
}

std::string LineParser::parse() {
  const auto result = parse_integer<int>(out(0));
  if (!result) return "no result";
  if (*result != 0 || words_.named.count("left") != 0) {
    return fmt::format("this run ends in the middle ({}): it cannot be replayed yet",
                       *result != 0 ? "a call failed" : "requests were left open");
  }
  set_up();
  data();
  const bool sends = line_.call == Call::kIsend || line_.call == Call::kIrecv;
  if (error_.empty() && sends && line_.null_output) {
    return "this run ends in the middle (a message was abandoned): it cannot be replayed yet";
  }
  return error_;
}

class RankParser {
 public:
  explicit RankParser(RankTrace& rank) : rank_(rank) {}
  std::string add(std::string_view text, uint32_t number);

 private:
  std::string index(TraceLine& line, int at);
  std::string check_parts(const TraceLine& line) const;
  static std::string count(int& have, int id, const char* what) {
    if (id != have) return fmt::format("{} {} where {} was next", what, id, have);
    ++have;
    return {};
  }
  RankTrace& rank_;
};

std::string RankParser::check_parts(const TraceLine& line) const {
  for (const TracePart& part : line.parts) {
    if (part.mhandle < 0 || part.mhandle >= static_cast<int>(rank_.mhandle_lines.size())) {
      return fmt::format("m{} was never registered", part.mhandle);
    }
    const TraceLine& region =
        rank_.lines[static_cast<size_t>(rank_.mhandle_lines[static_cast<size_t>(part.mhandle)])];
    if (part.offset > region.size || part.size > region.size - part.offset) {
      return fmt::format("{} bytes at {} are outside m{} ({} bytes)", part.size, part.offset,
                         part.mhandle, region.size);
    }
  }
  return {};
}

// Enters what the line makes into the tables, and checks what it uses.
std::string RankParser::index(TraceLine& line, int at) {
  auto known = [](int id, int have) { return id < have ? "" : "an object is used before it is made"; };
  switch (line.call) {
    case Call::kInit: return count(rank_.contexts, line.context, "context");
    case Call::kListen: {
      const std::string why = known(line.context, rank_.contexts);
      return why.empty() ? count(rank_.listens, line.listen, "listenComm") : why;
    }
    case Call::kConnect:
      if (line.context >= rank_.contexts) return known(line.context, rank_.contexts);
      return line.null_output ? std::string() : count(rank_.sends, line.comm, "sendComm");
    case Call::kAccept:
      if (line.listen >= rank_.listens) return known(line.listen, rank_.listens);
      return line.null_output ? std::string() : count(rank_.recvs, line.comm, "recvComm");
    case Call::kCloseListen: return known(line.listen, rank_.listens);
    case Call::kSetNetAttr:
    case Call::kFinalize: return known(line.context, rank_.contexts);
    default: break;
  }
  if (line.comm_kind != 0 && line.comm >= (line.comm_kind == 's' ? rank_.sends : rank_.recvs)) {
    return "a comm is used before it is made";
  }
  if (line.call == Call::kRegMr || line.call == Call::kRegMrDmaBuf) {
    if (line.mhandle != static_cast<int>(rank_.mhandle_lines.size())) return "mhandles do not count up";
    rank_.mhandle_lines.push_back(at);
    return {};
  }
  if (line.call == Call::kDeregMr) {
    return known(line.mhandle, static_cast<int>(rank_.mhandle_lines.size()));
  }
  if (line.call == Call::kTest) {
    if (line.request >= static_cast<int>(rank_.requests.size())) return "test of an unknown request";
    RequestInfo& request = rank_.requests[static_cast<size_t>(line.request)];
    const TraceLine& post = rank_.lines[static_cast<size_t>(request.post_line)];
    if (request.test_line >= 0) return "a request is done twice";
    if (post.thread != line.thread) return "a request is tested by another thread than posted it";
    request.test_line = at;
    line.comm_kind = post.comm_kind;
    line.comm = post.comm;
    return {};
  }
  if (line.request >= 0) {
    if (line.request != static_cast<int>(rank_.requests.size())) return "requests do not count up";
    rank_.requests.push_back({at, -1, {}});
  }
  return check_parts(line);
}

std::string RankParser::add(std::string_view text, uint32_t number) {
  if (text.empty() || text[0] == '#') return {};
  const Split words = split(text);
  if (words.in.size() < 3) return "not <us> <thread> <call>";
  const auto thread = parse_integer<uint32_t>(words.in[1]);
  if (!thread || *thread >= kMaxThreads) return "no thread number";
  if (words.in[2] == "thread") return {};
  const auto call = call_named(words.in[2]);
  if (!call) return fmt::format("'{}' is no call of a plugin", words.in[2]);
  TraceLine line;
  line.number = number;
  line.call = *call;
  line.text = std::string(text.substr(std::min(text.find(' '), text.size() - 1) + 1));
  const auto it = std::find(rank_.thread_numbers.begin(), rank_.thread_numbers.end(), *thread);
  line.thread = static_cast<uint32_t>(it - rank_.thread_numbers.begin());
  if (it == rank_.thread_numbers.end()) {
    rank_.thread_numbers.push_back(*thread);
    rank_.threads.emplace_back();
  }
  line.position = static_cast<uint32_t>(rank_.threads[line.thread].size());
  std::string why = LineParser(words, line).parse();
  const int at = static_cast<int>(rank_.lines.size());
  if (why.empty()) why = index(line, at);
  if (!why.empty()) return why;
  rank_.threads[line.thread].push_back(static_cast<uint32_t>(at));
  rank_.lines.push_back(std::move(line));
  return {};
}

}  // namespace

std::string parse_rank(const std::string& file, RankTrace& rank) {
  std::ifstream in(file);
  if (!in) return fmt::format("cannot read {}", file);
  rank.file = file;
  std::string text;
  bool header = false;
  RankParser parser(rank);
  for (uint32_t number = 1; std::getline(in, text); ++number) {
    if (number == 1) header = text.rfind("# nccl-net-trace v1", 0) == 0;
    const std::string why = header ? parser.add(text, number) : "not a '# nccl-net-trace v1' file";
    if (!why.empty()) return fmt::format("{} line {}: {}", file, number, why);
  }
  if (rank.lines.empty()) return fmt::format("{}: no calls in it", file);
  return {};
}

}  // namespace weft::ncclnet
