// SPDX-License-Identifier: Apache-2.0
// Starting ranks, listening to them, ending them; see launcher.h.
#include "tools/ncclnet/launcher.h"

#include <poll.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <memory>

#include <fmt/format.h>

#include "tools/common/clock.h"
#include "tools/common/progress.h"
#include "tools/ncclnet/rank_process.h"

namespace weft::ncclnet {
namespace {

using tools::ExitCode;

constexpr int64_t kGraceNs = 300'000'000;  // for the others to say what they saw
constexpr int kPollMs = 20;
constexpr size_t kMaxStatsBytes = 16 << 20;

volatile sig_atomic_t interrupted = 0;
void on_signal(int signal) { interrupted = signal; }

struct Cause {
  ExitCode code;
  int weight;  // the larger the more telling
  std::string why;
};

class Launcher {
 public:
  Launcher(const Options& options, const std::vector<std::string>& words, const Plan& plan)
      : options_(options),
        words_(words),
        plan_(plan),
        progress_(options.mode_name(), plan.total_bytes, options.quiet),
        start_ns_(tools::now_ns()) {}

  tools::Report run();

 private:
  bool start();
  void wait();
  void listen_to_ranks();
  void handle(uint32_t index, Packet packet);
  void reached(const Packet& packet);
  void look_for_ended();
  void blame(ExitCode code, int weight, const std::string& why);
  void time_out();
  void collect(tools::Report& report);
  bool all_ended() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& r) { return r->ended; });
  }
  bool all_said_good() const {
    return std::all_of(ranks_.begin(), ranks_.end(), [](const auto& r) {
      return r->killed_as_planned || (r->verdict && r->verdict->number == tools::kGood);
    });
  }
  uint64_t bytes() const;

  const Options& options_;
  const std::vector<std::string>& words_;
  const Plan& plan_;
  tools::Progress progress_;
  int64_t start_ns_;
  int64_t failed_ns_ = 0;
  bool have_met_ = false;
  std::vector<std::unique_ptr<RankProcess>> ranks_;
  std::map<uint32_t, std::pair<uint32_t, uint64_t>> barriers_;  // arrived, largest value
  std::vector<Cause> causes_;
};

bool Launcher::start() {
  std::vector<tools::UniqueFd> namespaces;
  for (const std::string& name : options_.namespaces) {
    std::string why;
    namespaces.push_back(tools::open_network_namespace(name, why));
    if (namespaces.back()) continue;
    blame(errno == EACCES || errno == EPERM ? tools::kCannotRunHere : tools::kUsage, 0, why);
    return false;
  }
  for (uint32_t i = 0; i < plan_.ranks; ++i) {
    std::string why;
    ExitCode code = tools::kFailed;
    const int where = namespaces.empty() ? -1 : namespaces[i % namespaces.size()].get();
    ranks_.push_back(start_rank(i, plan_.ranks, words_, where, code, why));
    if (ranks_.back() != nullptr) continue;
    ranks_.pop_back();
    blame(code, 0, why);
    return false;
  }
  return true;
}

void Launcher::blame(ExitCode code, int weight, const std::string& why) {
  if (failed_ns_ == 0) failed_ns_ = tools::now_ns();
  causes_.push_back({code, weight, why});
}

uint64_t Launcher::bytes() const {
  uint64_t sum = 0;
  for (const auto& rank : ranks_) sum += rank->board().bytes.load(std::memory_order_relaxed);
  return sum;
}

void Launcher::reached(const Packet& packet) {
  auto& [arrived, largest] = barriers_[packet.number];
  largest = std::max(largest, packet.value);
  const auto dead = std::count(plan_.killed.begin(), plan_.killed.end(), true);
  if (++arrived < plan_.ranks - (have_met_ ? static_cast<uint32_t>(dead) : 0)) return;
  have_met_ = true;
  if (plan_.at_barrier) {
    progress_.clear();
    plan_.at_barrier(packet.number, largest);
  }
  for (const auto& rank : ranks_) {
    rank->channel.send({Word::kGo, packet.number, largest, {}, {}});
  }
  barriers_.erase(packet.number);
}

void Launcher::handle(uint32_t index, Packet packet) {
  switch (packet.word) {
    case Word::kPublish:
      packet.word = Word::kHandle;
      for (const auto& rank : ranks_) rank->channel.send(packet);
      break;
    case Word::kReady: reached(packet); break;
    case Word::kVerdict:
      if (packet.number != tools::kGood) {
        const auto code = static_cast<ExitCode>(packet.number);
        // That a peer is gone is a consequence more often than a cause.
        const bool consequence = packet.text.find("ncclRemoteError") != std::string::npos;
        blame(code,
              code == tools::kDataWrong ? 4
              : consequence             ? 1
                                        : 2,
              fmt::format("rank {} {}", index, packet.text));
      }
      ranks_[index]->verdict = std::move(packet);
      break;
    default: break;
  }
}

void Launcher::listen_to_ranks() {
  std::vector<pollfd> polled;
  for (const auto& rank : ranks_) {
    const short events = rank->channel.wants_to_write() ? POLLIN | POLLOUT : POLLIN;
    polled.push_back({rank->verdict ? -1 : rank->channel.fd(), events, 0});
  }
  ::poll(polled.data(), polled.size(), kPollMs);
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    ranks_[i]->channel.flush();
    while (auto packet = ranks_[i]->channel.receive()) handle(i, std::move(*packet));
  }
}

void Launcher::look_for_ended() {
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    RankProcess& rank = *ranks_[i];
    if (rank.ended) continue;
    const auto status = rank.child.poll();
    if (!status) continue;
    while (auto packet = rank.channel.receive()) handle(i, std::move(*packet));
    rank.ended = true;
    const bool good = rank.verdict && rank.verdict->number == tools::kGood;
    if (rank.verdict && !good) continue;  // it has said so itself
    if (good && WIFEXITED(*status) && WEXITSTATUS(*status) == tools::kGood) continue;
    rank.killed_as_planned = have_met_ && i < plan_.killed.size() && plan_.killed[i] &&
                             WIFSIGNALED(*status) && WTERMSIG(*status) == SIGKILL;
    if (rank.killed_as_planned) continue;
    std::string doing;
    for (uint32_t t = 0; t < kMaxThreads; ++t) {
      if (rank.board().threads[t].inside.load() == Call::kNone) continue;
      doing += fmt::format("{}{}", doing.empty() ? " at " : "; ", thread_state(rank, i, t, plan_));
    }
    blame(tools::kFailed, 3,
          fmt::format("rank {} died: {}{}", i, tools::describe_status(*status),
                      good ? " after its work was done" : doing));
  }
}

void Launcher::time_out() {
  std::string all;
  for (uint32_t i = 0; i < ranks_.size(); ++i) {
    if (ranks_[i]->ended) continue;
    all += fmt::format("{}{}", all.empty() ? "" : " | ", state_of(*ranks_[i], i, plan_));
  }
  blame(tools::kTimedOut, 0, fmt::format("timed out after {:g} s: {}", options_.timeout_s, all));
}

void Launcher::wait() {
  const auto deadline = start_ns_ + static_cast<int64_t>(options_.timeout_s * 1e9);
  while (!all_ended()) {
    listen_to_ranks();
    look_for_ended();
    const int64_t now = tools::now_ns();
    if (failed_ns_ != 0 && now - failed_ns_ > kGraceNs) return;
    if (interrupted != 0) {
      blame(tools::kFailed, 5, fmt::format("interrupted by signal {}", interrupted));
      return;
    }
    if (failed_ns_ == 0 && now > deadline) {
      time_out();
      return;
    }
    progress_.update(bytes(), {});
  }
}

void Launcher::collect(tools::Report& report) {
  int64_t first = 0, last = 0, told = 0;
  for (const auto& rank : ranks_) {
    const Board& board = rank->board();
    const int64_t begin = board.first_data_ns.load();
    if (begin != 0 && (first == 0 || begin < first)) first = begin;
    last = std::max(last, board.last_data_ns.load());
    told = std::max(told, board.told_ns.load());
    if (rank->verdict && rank->verdict->number == tools::kGood) {
      report.api = fmt::format("{}", rank->verdict->value);
    }
    const off_t size = ::lseek(rank->stats_fd.get(), 0, SEEK_END);
    std::string lines(std::min<size_t>(size > 0 ? static_cast<size_t>(size) : 0, kMaxStatsBytes),
                      0);
    const ssize_t got = ::pread(rank->stats_fd.get(), lines.data(), lines.size(), 0);
    lines.resize(got > 0 ? static_cast<size_t>(got) : 0);
    const std::string why = report.plugin.add(lines);
    if (!why.empty()) fmt::print(stderr, "weft_ncclnet: {}\n", why);
  }
  report.ranks = plan_.ranks;
  report.bytes = bytes();
  report.seconds = last > first ? tools::seconds_between(first, last) : 0;
  if (told > 0) report.extra.emplace_back("death_seconds", fmt::format("{:.3f}", told / 1e9));
}

tools::Report Launcher::run() {
  if (start()) wait();
  for (const auto& rank : ranks_) rank->child.kill_and_reap();
  progress_.clear();
  tools::Report report;
  report.what = options_.mode_name();
  collect(report);
  report.extra.emplace_back(
      "total_seconds", fmt::format("{:.3f}", tools::seconds_between(start_ns_, tools::now_ns())));
  if (!causes_.empty()) {
    // The first of the most telling.
    const auto cause = std::max_element(causes_.begin(), causes_.end(),
                                        [](auto& a, auto& b) { return a.weight < b.weight; });
    report.code = cause->code;
    report.why = cause->why;
    for (const Cause& other : causes_) {
      if (&other != &*cause) fmt::print(stderr, "also: {}\n", other.why);
    }
  }
  if (report.code == tools::kGood &&
      (plan_.ranks == 0 || !all_said_good() ||
       (plan_.total_bytes > 0 && report.bytes != plan_.total_bytes))) {
    report.code = tools::kFailed;
    report.why = fmt::format(
        "{} of {} bytes were verified, and not all of {} ranks said that all "
        "is well",
        report.bytes, plan_.total_bytes, plan_.ranks);
  }
  if (report.code == tools::kGood && plan_.finish) plan_.finish(report);
  return report;
}

}  // namespace

tools::Report launch(const Options& options, const std::vector<std::string>& words,
                     const Plan& plan) {
  struct sigaction action {};
  action.sa_handler = on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) ::sigaction(signal, &action, nullptr);
  return Launcher(options, words, plan).run();
}

}  // namespace weft::ncclnet
