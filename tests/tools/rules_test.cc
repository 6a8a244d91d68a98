// SPDX-License-Identifier: Apache-2.0
// The graph of a run finds the cycles there are, says whose they are, and finds none where there is
// none: in small runs with a cycle planted, and in all recorded ones.
#include "tools/ncclnet/trace_rules.h"

#include <algorithm>
#include <fstream>
#include <regex>

#include <gtest/gtest.h>

#include "tests/tools/tool_runner.h"

namespace weft::test {
namespace {

using ncclnet::Why;

using Lines = std::vector<std::string>;  // "<thread> <call> ...", the time is put before

ncclnet::Trace load(const std::vector<Lines>& ranks) {
  ScratchFolder scratch;
  for (size_t rank = 0; rank < ranks.size(); ++rank) {
    std::ofstream out(scratch.path() + "/rank" + std::to_string(rank) + ".trace");
    out << "# nccl-net-trace v1\n";
    for (size_t i = 0; i < ranks[rank].size(); ++i) out << i << ' ' << ranks[rank][i] << '\n';
  }
  ncclnet::Trace trace;
  EXPECT_EQ(ncclnet::load_trace(scratch.path(), trace), "");
  return trace;
}

std::string cycle(const ncclnet::Trace& trace, bool strict) {
  std::vector<ncclnet::RankNeeds> needs;
  for (const auto& rank : trace.ranks) {
    needs.push_back(strict ? ncclnet::strict_needs(rank) : ncclnet::relaxed_needs(rank));
  }
  return ncclnet::find_cycle(trace, needs);
}

void expect_cycle(const ncclnet::Trace& trace, bool strict, const char* words) {
  const std::string text = cycle(trace, strict);
  EXPECT_TRUE(std::regex_search(text, std::regex(words))) << text << "\nshould say: " << words;
}

// Each of two ranks connects to the other; one thread sets up and another moves data.
Lines connected(const std::string& mine, const std::string& theirs, Lines data) {
  Lines lines = {"0 init comm=1 tc=-1 prof=1 = 0 c0",
                 "0 listen c0 dev=0 = 0 l0 h=" + mine,
                 "0 connect c0 dev=0 h=" + theirs + " = 0 -",
                 "0 accept l0 = 0 r0",
                 "0 connect c0 dev=0 h=" + theirs + " = 0 s0",
                 "0 regMr s0 b0 size=4096 type=1 base=10000 = 0 m0",
                 "0 regMr r0 b0 size=4096 type=1 base=10000 = 0 m1"};
  lines.insert(lines.end(), data.begin(), data.end());
  for (const char* line : {"0 deregMr s0 m0 = 0", "0 closeSend s0 = 0", "0 deregMr r0 m1 = 0",
                           "0 closeRecv r0 = 0", "0 closeListen l0 = 0", "0 finalize c0 = 0"}) {
    lines.emplace_back(line);
  }
  return lines;
}

// Both ranks do the same.
ncclnet::Trace pair(const Lines& data) {
  return load({connected("a", "b", data), connected("b", "a", data)});
}

TEST(Cycle, ThereIsNoneWhereReceivesArePostedFirst) {
  const auto trace = pair({"1 irecv r0 n=1 m1+0:64:0 = 0 q0", "1 isend s0 m0+64 64 tag=0 = 0 q1",
                           "1 test q0 = 0 done 64", "1 test q1 = 0 done 64"});
  EXPECT_EQ(cycle(trace, true), "");
  EXPECT_EQ(cycle(trace, false), "");
}

TEST(Cycle, BothSendBeforeTheyPost) {
  const auto trace = pair({"1 isend s0 m0+64 64 tag=0 = 0 q0", "1 irecv r0 n=1 m1+0:64:0 = 0 q1",
                           "1 test q0 = 0 done 64", "1 test q1 = 0 done 64"});
  expect_cycle(trace, true,
               "rank 0 line 9 .*isend.* is taken only once this receive is posted: rank 1 line 10 "
               ".*irecv.* comes after this, on its thread: rank 1 line 9 .*isend");
  EXPECT_EQ(cycle(trace, false), "");  // a send that waits for nothing may come later
}

TEST(Cycle, BothConnectBeforeTheyAccept) {
  auto eager = [](const char* mine, const char* theirs) {
    Lines lines = connected(mine, theirs, {});
    lines.erase(lines.begin() + 2);  // the first attempt, after which it goes on in the background
    std::swap(lines[2], lines[3]);
    return lines;
  };
  const auto trace = load({eager("a", "b"), eager("b", "a")});
  expect_cycle(trace, true, "connect.* succeeds only once this accepts: rank . line 5 .*accept");
  EXPECT_EQ(cycle(trace, false), "");
  EXPECT_EQ(cycle(pair({}), true), "");  // in the background it does no harm
}

// What is sent may be what was received: also in relaxed order.
TEST(Cycle, BothSendOnlyWhatTheyHaveReceived) {
  const auto trace = pair({"1 irecv r0 n=1 m1+0:64:0 = 0 q0", "1 test q0 = 0 done 64",
                           "1 isend s0 m0+64 64 tag=0 = 0 q1", "1 test q1 = 0 done 64"});
  expect_cycle(trace, true, "is done only once this message is sent");
  expect_cycle(trace, false,
               "isend.* may send what this brought: rank . line 10 .*test q0.* is done only once "
               "this message is sent: rank . line 11");
}

TEST(Cycle, BothReceiveOverTheBytesTheySend) {
  auto over = [](const char* receive) {
    return Lines{"1 isend s0 m0+64 64 tag=0 = 0 q0", "1 test q0 = 0 done 64", receive,
                 "1 test q1 = 0 done 64"};
  };
  expect_cycle(pair(over("1 irecv r0 n=1 m1+100:64:0 = 0 q1")), false,
               "irecv.* comes after this, which has the same bytes before it: rank . line 10");
  EXPECT_EQ(cycle(pair(over("1 irecv r0 n=1 m1+128:64:0 = 0 q1")), false), "");
}

TEST(Cycle, AThirdRankIsInIt) {
  // 0 sends to 1, 1 to 2, 2 to 0, each only after it has received.
  std::vector<Lines> ranks;
  const char* names[] = {"a", "b", "c"};
  for (size_t i = 0; i < 3; ++i) {
    ranks.push_back(connected(names[i], names[(i + 1) % 3],
                              {"1 irecv r0 n=1 m1+0:64:0 = 0 q0", "1 test q0 = 0 done 64",
                               "1 isend s0 m0+64 64 tag=0 = 0 q1", "1 test q1 = 0 done 64"}));
  }
  const std::string text = cycle(load(ranks), false);
  for (const char* rank : {"rank 0 line 11", "rank 1 line 11", "rank 2 line 11"}) {
    EXPECT_NE(text.find(rank), std::string::npos) << text;
  }
  // One that begins breaks it.
  std::swap(ranks[1][8], ranks[1][9]);
  std::swap(ranks[1][7], ranks[1][8]);
  ranks[1][7] = "1 isend s0 m0+64 64 tag=0 = 0 q0";
  ranks[1][8] = "1 irecv r0 n=1 m1+0:64:0 = 0 q1";
  ranks[1][9] = "1 test q1 = 0 done 64";
  ranks[1][10] = "1 test q0 = 0 done 64";
  EXPECT_EQ(cycle(load(ranks), false), "");
}

bool waits(const ncclnet::RankNeeds& needs, const ncclnet::RankTrace& rank, uint32_t line,
           uint32_t before, Why why) {
  for (size_t at = 0; at < rank.lines.size(); ++at) {
    if (rank.lines[at].number != line) continue;
    return std::any_of(needs[at].begin(), needs[at].end(), [&](const ncclnet::Need& need) {
      return rank.lines[need.line].number == before && need.why == why;
    });
  }
  return false;
}

TEST(RelaxedNeeds, AreThoseOfTheDataAndOfNothingElse) {
  // Two receives are the most outstanding on r0: the third waits for the first.
  const auto trace =
      pair({"1 irecv r0 n=1 m1+0:64:0 = 0 q0", "1 irecv r0 n=1 m1+64:64:0 = 0 q1",
            "1 isend s0 m0+192 64 tag=0 = 0 q2", "1 isend s0 m0+256 64 tag=0 = 0 q3",
            "1 isend s0 m0+320 64 tag=0 = 0 q4", "1 test q0 = 0 done 64",
            "1 irecv r0 n=1 m1+128:64:0 = 0 q5", "1 test q1 = 0 done 64", "1 test q5 = 0 done 64",
            "1 test q2 = 0 done 64", "1 test q3 = 0 done 64", "1 test q4 = 0 done 64"});
  const ncclnet::RankTrace& rank = trace.ranks[0];
  const auto needs = ncclnet::relaxed_needs(rank);
  EXPECT_TRUE(waits(needs, rank, 15, 14, Why::kWindow)) << "a third receive: the first done";
  EXPECT_TRUE(waits(needs, rank, 10, 9, Why::kObject)) << "receives of a comm in their order";
  EXPECT_TRUE(waits(needs, rank, 14, 9, Why::kPosted));
  EXPECT_TRUE(waits(needs, rank, 21, 18, Why::kRequests)) << "deregMr: a send of the comm done";
  EXPECT_TRUE(waits(needs, rank, 23, 17, Why::kRequests)) << "deregMr: a receive of the comm done";
  for (uint32_t line = 2; line < 26; ++line) {
    EXPECT_TRUE(waits(needs, rank, 26, line, Why::kAbove)) << "finalize: line " << line;
  }
  EXPECT_EQ(needs[9].size(), 1u) << "the first send: its comm's latest line, the regMr";
  EXPECT_EQ(cycle(trace, false), "");
}

struct Recorded {
  const char* name;
  bool strict;  // whether strict order can be kept
};

class RecordedRun : public testing::TestWithParam<Recorded> {};

TEST_P(RecordedRun, HasTheCyclesThatTheReadmeOfTheTracesSays) {
  ncclnet::Trace trace;
  ASSERT_EQ(ncclnet::load_trace(trace_path(GetParam().name), trace), "");
  if (GetParam().strict)
    EXPECT_EQ(cycle(trace, true), "");
  else
    expect_cycle(trace, true, "rank . line .*; rank . line .*");
  EXPECT_EQ(cycle(trace, false), "");
}

INSTANTIATE_TEST_SUITE_P(
    Traces, RecordedRun,
    testing::Values(Recorded{"a-ops-cts", true}, Recorded{"a-ops-eager", false},
                    Recorded{"b-ddp-cts", true}, Recorded{"b-ddp-eager", false},
                    Recorded{"c-moe-cts", true}, Recorded{"c-moe-eager", false},
                    Recorded{"d-ll-cts", true}, Recorded{"d-ll-eager", false},
                    Recorded{"e-gdr-reg", true}, Recorded{"f-dmabuf", true},
                    Recorded{"f-dmabuf-reg", true}, Recorded{"g-multi", true},
                    Recorded{"g-share", true}, Recorded{"g-split", true}, Recorded{"i-max2", false},
                    Recorded{"j-2pernode", true}),
    [](const auto& run) {
      std::string text = run.param.name;
      for (char& c : text) c = c == '-' ? '_' : c;
      return text;
    });

TEST(Check, SaysWhetherAndWhyNot) {
  const ToolRun good = run_tool({"check", trace_path("a-ops-eager"), "--rules", "relaxed"});
  EXPECT_EQ(good.exit_code, 0) << good.output << good.errors;
  EXPECT_EQ(good.last_line.rfind("PASS check rules=relaxed ranks=2 ", 0), 0u) << good.last_line;
  const ToolRun bad = run_tool({"check", trace_path("a-ops-eager"), "--rules", "strict"});
  EXPECT_EQ(bad.exit_code, 1) << bad.output << bad.errors;
  EXPECT_EQ(bad.last_line.rfind("FAIL a-ops-eager: strict order hangs: ", 0), 0u) << bad.last_line;
  EXPECT_EQ(run_tool({"check", trace_path("h-abort")}).exit_code, 2);
  EXPECT_EQ(run_tool({"check", "/no/such/folder"}).exit_code, 2);
}

}  // namespace
}  // namespace weft::test
