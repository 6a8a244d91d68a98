// SPDX-License-Identifier: Apache-2.0
// The words of a line and what they say, call by call; see trace_line.h.
#include "tools/ncclnet/trace_line.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "plugin/nccl/common.h"
#include "tools/common/numbers.h"

namespace weft::ncclnet {
namespace {

using tools::parse_integer;

constexpr int kMaxId = 1 << 20;

// Fills in one TraceLine; the first thing that is wrong stays in `error`.
class LineParser {
 public:
  LineParser(const LineWords& words, TraceLine& line) : words_(words), line_(line) {}

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
    const auto value =
        word.size() > 1 && word[0] == kind ? parse_integer<int>(word.substr(1)) : std::nullopt;
    if (value && *value >= 0 && *value < kMaxId) return *value;
    wrong(fmt::format("'{}' is no {}<number>", word, kind));
    return -1;
  }
  void comm(std::string_view word) {
    line_.comm_kind = word.empty() ? '?' : word[0];
    if (line_.comm_kind != 's' && line_.comm_kind != 'r')
      wrong(fmt::format("'{}' is no comm", word));
    else
      line_.comm = id(line_.comm_kind, word);
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
    if (it == words_.named.end() || it->second.empty() || it->second.size() > 32)
      wrong("h= is missing");
    else
      line_.handle = std::string(it->second);
  }
  void part(std::string_view where, std::string_view size, std::string_view tag);
  void parts_from(size_t first);
  void attributes(std::string_view key, int64_t* to);
  void request_output();
  void result();
  void left_open();
  void set_up();
  void data();
  void test();

  const LineWords& words_;
  TraceLine& line_;
  std::string error_;
};

void LineParser::part(std::string_view where, std::string_view size, std::string_view tag) {
  TracePart part;
  const size_t plus = where.find('+');
  const auto offset = plus == std::string_view::npos
                          ? std::nullopt
                          : parse_integer<uint64_t>(where.substr(plus + 1));
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
  if (count != line_.parts.size() || count == 0 || count > kMaxParts)
    wrong("n= and the parts differ");
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

void LineParser::test() {
  line_.request = id('q', in(3));
  if (line_.result != 0) return;
  if (out(1) != "done") wrong("a test that is not done");
  for (size_t i = 2; i < words_.out.size(); ++i) {
    if (words_.out[i] == "nosize")
      line_.no_sizes = true;
    else if (const auto size = parse_integer<int64_t>(words_.out[i]))
      line_.sizes.push_back(*size);
    else
      wrong(fmt::format("'{}' is no size", words_.out[i]));
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
      if (line_.size > (uint64_t{1} << 40) || line_.base + line_.size < line_.base)
        wrong("size= is too large");
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
    case Call::kTest: test(); break;
    case Call::kCloseSend:
    case Call::kCloseRecv:
      comm(in(3));
      left_open();
      break;
    default: break;
  }
}

// What became of the call.
void LineParser::result() {
  const auto result = parse_integer<int>(out(0));
  if (!result) wrong("no result");
  line_.result = result.value_or(0);
  const bool may_fail = line_.call == Call::kIsend || line_.call == Call::kTest;
  if (line_.result != 0 && (!may_fail || line_.result != nccl::kRemoteError)) {
    wrong(fmt::format("result {}: only isend and test may have failed, with {}", line_.result,
                      static_cast<int>(nccl::kRemoteError)));
  }
  for (const std::string_view word : words_.out) {
    if (word == "abandoned") line_.abandoned = true;
  }
  if (line_.abandoned && line_.call != Call::kIsend) wrong("only an isend can be abandoned");
}

// Such as left=q34,q36.
void LineParser::left_open() {
  const auto it = words_.named.find("left");
  if (it == words_.named.end()) return;
  std::string_view list = it->second;
  while (!list.empty()) {
    const size_t end = std::min(list.find(','), list.size());
    line_.left.push_back(id('q', list.substr(0, end)));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  if (line_.left.empty()) wrong("left= is empty");
}

std::string LineParser::parse() {
  result();
  set_up();
  data();
  const bool posts = line_.call == Call::kIsend || line_.call == Call::kIrecv;
  const bool refused = line_.abandoned || line_.result != 0;
  if (posts && line_.null_output != refused) wrong("a message both taken and not, or neither");
  return error_;
}

}  // namespace

LineWords split_line(std::string_view text) {
  LineWords result;
  bool after = false;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const size_t equals = word.find('=');
    if (word == "=")
      after = true;
    else if (equals != std::string_view::npos) {
      result.named[word.substr(0, equals)] = word.substr(equals + 1);
    } else {
      (after ? result.out : result.in).push_back(word);
    }
  }
  return result;
}

std::string parse_line(const LineWords& words, TraceLine& line) {
  return LineParser(words, line).parse();
}

}  // namespace weft::ncclnet
