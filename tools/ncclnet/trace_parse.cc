// SPDX-License-Identifier: Apache-2.0
//
// One rank's file into lines and tables, every use of an object checked. A line is
// `<us> <thread> <call> <arguments> = <result> <outputs>`. Ids count from 0 in the order of
// appearance, so a table by id is dense, and an id that jumps is a broken file.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "tools/common/numbers.h"
#include "tools/ncclnet/board.h"
#include "tools/ncclnet/trace.h"
#include "tools/ncclnet/trace_line.h"

namespace weft::ncclnet {
namespace {

constexpr uintmax_t kMaxFileBytes = 256 << 20;

std::optional<Call> call_named(std::string_view name) {
  for (size_t i = 1; i < kCallNames.size(); ++i) {
    if (kCallNames[i] == name) return static_cast<Call>(i);
  }
  return std::nullopt;
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
  auto known = [](int id, int have) {
    return id < have ? "" : "an object is used before it is made";
  };
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
    if (line.mhandle != static_cast<int>(rank_.mhandle_lines.size()))
      return "mhandles do not count up";
    rank_.mhandle_lines.push_back(at);
    return {};
  }
  if (line.call == Call::kDeregMr) {
    return known(line.mhandle, static_cast<int>(rank_.mhandle_lines.size()));
  }
  if (line.call == Call::kTest) {
    if (line.request >= static_cast<int>(rank_.requests.size()))
      return "test of an unknown request";
    RequestInfo& request = rank_.requests[static_cast<size_t>(line.request)];
    const TraceLine& post = rank_.lines[static_cast<size_t>(request.post_line)];
    if (request.test_line >= 0) return "a request is done twice";
    if (post.thread != line.thread) return "a request is tested by another thread than posted it";
    if (line.result == 0) request.test_line = at;
    line.comm_kind = post.comm_kind;
    line.comm = post.comm;
    return {};
  }
  for (const int left : line.left) {
    if (left >= static_cast<int>(rank_.requests.size()) ||
        rank_.requests[static_cast<size_t>(left)].test_line >= 0) {
      return fmt::format("q{} is no request that is open", left);
    }
  }
  if (line.request >= 0) {
    if (line.request != static_cast<int>(rank_.requests.size())) return "requests do not count up";
    rank_.requests.push_back({at, -1, {}});
  }
  return check_parts(line);
}

std::string RankParser::add(std::string_view text, uint32_t number) {
  if (text.rfind("# end", 0) == 0) rank_.has_end = true;
  if (text.empty() || text[0] == '#') return {};
  const LineWords words = split_line(text);
  if (words.in.size() < 3) return "not <us> <thread> <call>";
  const auto thread = tools::parse_integer<uint32_t>(words.in[1]);
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
  std::string why = parse_line(words, line);
  const int at = static_cast<int>(rank_.lines.size());
  if (why.empty()) why = index(line, at);
  if (!why.empty()) return why;
  rank_.threads[line.thread].push_back(static_cast<uint32_t>(at));
  rank_.lines.push_back(std::move(line));
  return {};
}

struct NumberedText {
  uint32_t number;  // in the file, from 1
  std::string text;
};

// The microsecond and the thread that a line begins with.
std::optional<std::pair<uint64_t, uint32_t>> place_of(std::string_view text) {
  const size_t one = text.find(' ');
  if (one == std::string_view::npos) return std::nullopt;
  const auto us = tools::parse_integer<uint64_t>(text.substr(0, one));
  const size_t two = std::min(text.find(' ', one + 1), text.size());
  const auto thread = tools::parse_integer<uint32_t>(text.substr(one + 1, two - one - 1));
  if (!us || !thread) return std::nullopt;
  return std::pair(*us, *thread);
}

// An isend that was never taken was written when its comm was closed. It belongs where its thread
// first tried it, which is what its time says.
void move_to_first_attempt(std::vector<NumberedText>& lines) {
  const auto here = place_of(lines.back().text);
  if (!here) return;  // for the parser to complain of
  const auto later = std::find_if(lines.begin(), lines.end(), [&](const NumberedText& line) {
    const auto place = place_of(line.text);
    return place && place->second == here->second && place->first > here->first;
  });
  if (later != lines.end()) std::rotate(later, std::prev(lines.end()), lines.end());
}

}  // namespace

std::string parse_rank(const std::string& file, RankTrace& rank) {
  // A pipe would be waited for, a device read for ever.
  std::error_code error;
  const bool regular = std::filesystem::is_regular_file(file, error);
  const uintmax_t bytes = regular ? std::filesystem::file_size(file, error) : 0;
  if (error) return fmt::format("cannot read {}: {}", file, error.message());
  if (!regular) return file + " is no regular file";
  if (bytes > kMaxFileBytes) {
    return fmt::format("{} is larger than {} MiB", file, kMaxFileBytes >> 20);
  }
  std::ifstream in(file);
  if (!in) return fmt::format("cannot read {}", file);
  rank.file = file;
  std::string text;
  std::vector<NumberedText> lines;
  while (std::getline(in, text)) {
    constexpr std::string_view kAbandoned = " abandoned";
    const bool moves = text.size() > kAbandoned.size() && text.ends_with(kAbandoned);
    lines.push_back({static_cast<uint32_t>(lines.size()) + 1, std::move(text)});
    if (moves) move_to_first_attempt(lines);
  }
  const bool header = !lines.empty() && lines[0].text.rfind("# nccl-net-trace v1", 0) == 0;
  RankParser parser(rank);
  for (const NumberedText& line : lines) {
    const std::string why =
        header ? parser.add(line.text, line.number) : "not a '# nccl-net-trace v1' file";
    if (!why.empty()) return fmt::format("{} line {}: {}", file, line.number, why);
  }
  if (rank.lines.empty()) return fmt::format("{}: no calls in it", file);
  return {};
}

}  // namespace weft::ncclnet
