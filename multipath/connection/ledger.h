// SPDX-License-Identifier: Apache-2.0
// Which copies of which segments are out on which paths, and what became of them.
//
// The ledger decides three things for the sender: may another segment go and where (window,
// selector), which copies are dead, and when to ask. A copy's life: posted -> settled as arrived,
// or condemned (it can no longer arrive) -> buried (its segment goes into repair). What condemns
// follows from the fabric's offloads:
//
//   datagram                it is older than an RTT and three later packets of its path arrived, or
//                           one sent later on any path did and it is overdue (RACK, RFC 8985):
//                           being wrong costs a duplicate
//   places, ordered, lossy  something posted later on the same path has arrived, and the copy is
//                           older than three times the largest recent RTT of any path (a rehash
//                           may delay it); a path that is seen to reorder is ordered no more
//   places, otherwise       nothing but a kill; a copy missing for four time-outs demands one
//   places                  both ends have killed the queue pair that carried it (path_kill)
//
// On placing fabrics burial waits for a report of that very message with a stamp no older than the
// evidence, so that at most one copy of a segment is ever alive (design, invariant 2). A time-out
// never sends data: it probes the path and asks for the message's state. Three time-outs without
// any arrival, while the peer is heard on other ways, make a path dead.
//
// Pure and single threaded. Owns the paths; messages belong to the sender's pool and are named, not
// pointed to.
#pragma once

#include <memory>
#include <vector>

#include "multipath/congestion/law.h"
#include "multipath/congestion/pipe.h"
#include "multipath/connection/send_message.h"
#include "multipath/connection/types.h"
#include "multipath/path/path.h"
#include "multipath/path/selector.h"
#include "transport/wire/control.h"

namespace weft {

// What a control packet says about itself.
struct Report {
  Time now;
  uint64_t stamp = 0;
  bool upper_bound = false;  // its sender had not polled for a while: RTT samples are only bounds
};

class Ledger {
 public:
  Ledger(const ConnectionConfig& config, SendMessagePool& messages);

  // --- Sending.
  bool has_room() const { return in_flight_ < law_->window(); }
  // How much goes on one path at once: a part of the window, so that many are in flight.
  uint32_t burst_bytes() const;
  // The path of the next burst, or null when none can take it.
  Path* choose_path(Time now);
  // Enters a copy; the returned number also names it to the fabric. Precondition: path.usable().
  uint64_t post(Path& path, SendMessage& message, uint32_t segment, bool repair, Time now);
  uint64_t post_probe(Path& path, Time now);
  // The fabric did not take the copy.
  void unpost(Path& path, uint64_t number);
  void source_free(Path& path, uint64_t number);

  // --- Arrivals.
  void on_path_ack(const Report& report, const wire::PathAck& ack);
  // After messages learnt of arrivals from their own reports: settles the copies concerned.
  // `latest` is the segment of `message` that arrived last, `hold` before the report was made.
  void sweep(const Report& report, const SendMessage* message, uint32_t latest, Duration hold);
  // Losses are looked for at the next deadline, which is now: once all reports that lie in the
  // fabric have been read, since after a pause of our own the first of many makes the rest look
  // late.
  void look_for_losses(Time now) { loss_deadline_ = earlier(loss_deadline_, now); }
  // Condemns and buries what can be.
  void detect_losses(Time now);

  // --- Time.
  Time deadline() const { return std::min(next_deadline_, loss_deadline_); }
  void on_deadline(Time now, Time last_heard);
  // Dead paths are probed only while somebody wants to send.
  void set_wanted(bool wanted, Time now);
  // There is more to send than may go now.
  void set_held_back(bool held_back) { held_back_ = held_back; }

  // --- Paths that end (placing fabrics).
  void suspend(Path& path);  // a kill has begun: nothing goes out on it
  // Both ends confirmed: every copy of this epoch is condemned; a new epoch begins, unproven.
  void bury_epoch(Path& path, uint64_t stamp, Time now);

  std::vector<Path>& paths() { return paths_; }
  const std::vector<Path>& paths() const { return paths_; }
  // A path for control: each in turn of those that have shown that they work, while there are any.
  // `prove`: of the others, those that are passed over are probed. Who only receives has nothing
  // else to learn from that its acks go nowhere.
  PathIndex control_path(Time now, bool prove);

  IntrusiveList<SendMessage, TouchedHook>& touched() { return touched_; }
  IntrusiveList<SendMessage, QueryHook>& queries() { return queries_; }
  bool queries_due() const { return !queries_.empty(); }
  bool kill_wanted(PathIndex* path);  // a dead path on a placing fabric, once

  Duration smoothed_rtt() const;
  const Pipe& pipe() const { return pipe_; }
  uint64_t window() const { return law_->window(); }
  uint64_t in_flight() const { return in_flight_; }
  uint64_t lost() const { return lost_; }
  uint64_t retransmitted() const { return retransmitted_; }

 private:
  SendMessage* find(const Copy& copy) {
    return messages_.find(copy.message, copy.message_generation);
  }
  void enter(Path& path, Copy& copy, Time now);
  void settle(Path& path, Copy& copy);
  // What one ack says of a path; law and selector hear of it once, however much it acks.
  struct Sample {
    Duration rtt{};             // 0: none
    Duration queue{};           // what of it is not the empty network's
    uint32_t marks = 0;         // of the packets to come, how many met congestion (ECN)
    uint64_t marked_bytes = 0;  // of those that came
    uint64_t bytes = 0;         // and without a mark
  };
  Sample take_sample(Path& path, const Report& report, const Copy& copy, Duration hold);
  void account(Path& path, const Report& report, const Sample& sample);
  void arrive(Path& path, uint64_t number, const Report& report, Sample& sample);
  void arrive_late(Path& path, uint64_t number, const Report& report);
  void witness(Path& path, uint64_t number, const Report& report);
  bool condemn(Path& path, uint64_t number, Copy& copy, Time now);
  void demand_kill_if_stuck(Path& path, const Copy& copy, Time now);
  bool overdue(const Path& path, uint64_t number, const Copy& copy, Time now);
  void ask(SendMessage& message, Time now);
  void bury(Path& path, Copy& copy, Time now);
  void refresh(Path& path);
  bool carries_control(const Path& path, Time now) const;
  void ask_for_proof(Path& path, Time now);
  void set_deadline(Path& path, Time at);
  Duration timeout(const Path& path) const;
  void ask_elsewhere(const Copy& oldest, Time now);
  void time_out(Path& path, Time now, Time last_heard);
  void revive(Path& path, Time now, bool holds_copies);

  const ConnectionConfig& config_;
  SendMessagePool& messages_;
  std::vector<Path> paths_;
  Pipe pipe_;
  std::unique_ptr<Selector> selector_;
  std::unique_ptr<Law> law_;
  PathMask usable_;
  PathMask busy_;     // paths with copies in their ring
  RttEstimator rtt_;  // over all paths
  uint64_t in_flight_ = 0;
  uint64_t lost_ = 0;
  uint64_t retransmitted_ = 0;
  Time newest_arrived_sent_{INT64_MIN};  // when the youngest copy known to have arrived was sent
  Duration newest_arrived_rtt_{};        // unadjusted
  // By how much arrivals lag behind others that were sent later, at most: paths differ, and so
  // does when the peer gets to look at them.
  Duration reorder_{};
  Time loss_deadline_ = Time::never();
  Time next_deadline_ = Time::never();  // never later than the earliest of the paths'
  bool wanted_ = false;
  bool held_back_ = false;
  PathIndex control_turn_ = 0;
  std::vector<PathIndex> kills_wanted_;
  IntrusiveList<SendMessage, TouchedHook> touched_;
  IntrusiveList<SendMessage, QueryHook> queries_;
};

}  // namespace weft
