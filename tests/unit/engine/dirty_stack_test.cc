// SPDX-License-Identifier: Apache-2.0
// Commands from several threads reach the engine, each once and in its flow's order.
#include <thread>

#include "tests/unit/engine/sim_pair.h"

namespace weft::test {
namespace {

TEST(DirtyStack, NoCommandIsLostBetweenProducersAndTheEngine) {
  constexpr int kFlows = 4;
  constexpr int kMessages = 500;
  SimPair pair{sim::SimConfig{}};
  std::vector<std::unique_ptr<SendFlow>> send(kFlows);
  std::vector<std::unique_ptr<ReceiveFlow>> receive(kFlows);
  for (int i = 0; i < kFlows; ++i) ASSERT_NO_FATAL_FAILURE(pair.open_flow(&send[i], &receive[i]));

  std::atomic<int> finished{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < kFlows; ++i) {
    threads.emplace_back([&, i] {
      std::vector<Request*> open;
      int posted = 0, completed = 0;
      const ReceiveBuffer empty{};
      while (completed < kMessages) {
        Request* r = nullptr;
        if (posted < kMessages &&
            receive[i]->receive(std::span(&empty, 1), &r) == Answer::kPosted) {
          open.push_back(r);
          ++posted;
        }
        while (!open.empty() && done(open.front())) {
          receive[i]->release(*open.front());
          open.erase(open.begin());
          ++completed;
        }
        std::this_thread::yield();
      }
      ++finished;
    });
    threads.emplace_back([&, i] {
      std::vector<Request*> open;
      int posted = 0, completed = 0;
      while (completed < kMessages) {
        Request* r = nullptr;
        if (posted < kMessages && send[i]->send(nullptr, 0, 0, nullptr, &r) == Answer::kPosted) {
          open.push_back(r);
          ++posted;
        }
        while (!open.empty() && done(open.front())) {
          send[i]->release(*open.front());
          open.erase(open.begin());
          ++completed;
        }
        std::this_thread::yield();
      }
      ++finished;
    });
  }
  // The test itself is the engine's thread; a lost command would keep `finished` from ever being
  // reached.
  int64_t rounds = 0;
  pair.run([&] { return finished == 2 * kFlows || ++rounds > 200'000'000; }, seconds(100000));
  while (finished < 2 * kFlows && ++rounds < 200'000'000) {
    pair.network().advance_to(pair.network().now() + microseconds(10));
    for (int i = 0; i < 2; ++i) pair.engine(i).progress(pair.network().now());
  }
  EXPECT_EQ(finished.load(), 2 * kFlows);
  for (auto& t : threads) t.join();
  for (int i = 0; i < kFlows; ++i) {
    pair.engine(0).close_flow(*send[i]);
    pair.engine(1).close_flow(*receive[i]);
  }
}

}  // namespace
}  // namespace weft::test
