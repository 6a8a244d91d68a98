// SPDX-License-Identifier: Apache-2.0
// IntrusiveList and Pool.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <set>
#include <vector>

#include "transport/base/intrusive_list.h"
#include "transport/base/pool.h"
#include "transport/base/random.h"

namespace weft {
namespace {

struct Ready : Hook {};
struct Timed : Hook {};
struct Item : Ready, Timed {
  int value = 0;
};
using ReadyList = IntrusiveList<Item, Ready>;
using TimedList = IntrusiveList<Item, Timed>;

template <class List>
std::vector<int> values(List& list) {
  std::vector<int> out;
  for (Item* i = list.front(); i && out.size() < 10000; i = list.after(*i)) out.push_back(i->value);
  return out;
}

TEST(IntrusiveList, DoesWhatAListDoes) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    std::vector<Item> items(40);
    for (int i = 0; i < 40; ++i) items[static_cast<size_t>(i)].value = i;
    ReadyList list;
    std::list<int> model;
    for (int n = 0; n < 5000; ++n) {
      Item& item = items[random.below(items.size())];
      Ready& hook = item;
      ASSERT_EQ(hook.linked(), std::count(model.begin(), model.end(), item.value) == 1);
      switch (random.below(4)) {
        case 0:  // one already in the list moves
          list.push_back(item);
          model.remove(item.value), model.push_back(item.value);
          break;
        case 1:
          list.push_front(item);
          model.remove(item.value), model.push_front(item.value);
          break;
        case 2:
          hook.unlink();
          model.remove(item.value);
          break;
        case 3: {
          Item* first = list.pop_front();
          ASSERT_EQ(first == nullptr, model.empty());
          if (first) {
            ASSERT_EQ(first->value, model.front());
            model.pop_front();
          }
          break;
        }
      }
      ASSERT_EQ(list.empty(), model.empty());
      ASSERT_EQ(values(list), std::vector<int>(model.begin(), model.end())) << "seed " << seed;
    }
  }
}

TEST(IntrusiveList, MovingTheFrontToTheFrontKeepsTheList) {
  ReadyList list;
  Item a, b;
  a.value = 1, b.value = 2;
  list.push_back(a), list.push_back(b);
  list.push_front(a);
  EXPECT_EQ(values(list), (std::vector<int>{1, 2}));
  list.push_front(b);
  EXPECT_EQ(values(list), (std::vector<int>{2, 1}));
}

TEST(IntrusiveList, OneElementIsInTwoListsAtOnce) {
  ReadyList ready;
  TimedList timed;
  Item a, b;
  a.value = 1, b.value = 2;
  ready.push_back(a), ready.push_back(b);
  timed.push_back(b), timed.push_back(a);
  EXPECT_EQ(values(timed), (std::vector<int>{2, 1}));
  static_cast<Ready&>(a).unlink();
  EXPECT_EQ(values(ready), std::vector<int>{2});
  EXPECT_EQ(values(timed), (std::vector<int>{2, 1}));
}

TEST(IntrusiveList, StaysSortedAndKeepsTheOrderOfEquals) {
  Random random(4);
  std::vector<std::unique_ptr<Item>> items;
  ReadyList list;
  std::vector<int> model;
  for (int i = 0; i < 300; ++i) {
    items.push_back(std::make_unique<Item>());
    items.back()->value = static_cast<int>(random.below(50)) * 1000 + i;
    const int value = items.back()->value;
    const auto before = [](const auto& x, const auto& y) {
      return x.value / 1000 < y.value / 1000;
    };
    list.insert_sorted(*items.back(), before);
    model.insert(std::upper_bound(model.begin(), model.end(), value,
                                  [](int x, int y) { return x / 1000 < y / 1000; }),
                 value);
  }
  EXPECT_EQ(values(list), model);
}

TEST(IntrusiveList, InsertingSortedMovesWhatIsInTheList) {
  ReadyList list;
  Item a, b, c;
  a.value = 1, b.value = 2, c.value = 3;
  const auto before = [](const Item& x, const Item& y) { return x.value < y.value; };
  for (Item* i : {&a, &b, &c}) list.insert_sorted(*i, before);
  a.value = 9;
  list.insert_sorted(a, before);
  EXPECT_EQ(values(list), (std::vector<int>{2, 3, 9}));
  a.value = 10;  // the last one, again: it must not end beside itself
  list.insert_sorted(a, before);
  EXPECT_EQ(values(list), (std::vector<int>{2, 3, 10}));
  b.value = 0;
  list.insert_sorted(b, before);
  EXPECT_EQ(values(list), (std::vector<int>{0, 3, 10}));
}

TEST(IntrusiveList, AnElementThatDiesLeavesAndAListThatDiesLetsGo) {
  Item a;
  {
    ReadyList list;
    list.push_back(a);
    {
      Item b;
      list.push_front(b);
      EXPECT_EQ(list.front(), &b);
    }
    EXPECT_EQ(list.front(), &a);
    EXPECT_EQ(list.after(a), nullptr);
  }
  EXPECT_FALSE(static_cast<Ready&>(a).linked());
}

struct Thing {
  uint32_t pool_index = 0;
  uint32_t pool_generation = 0;
  int value = 0;
};

TEST(Pool, GivesOutAtMostItsMaximumAndNeverTheSameTwice) {
  Pool<Thing, 64, 16> pool;
  std::set<Thing*> out;
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(pool.available(), 64 - i);
    Thing* t = pool.take();
    ASSERT_NE(t, nullptr);
    EXPECT_TRUE(out.insert(t).second);
  }
  EXPECT_EQ(pool.take(), nullptr);
  EXPECT_EQ(pool.take(), nullptr) << "full is a status, any number of times";
  EXPECT_EQ(pool.in_use(), 64u);
  pool.release(**out.begin());
  EXPECT_EQ(pool.take(), *out.begin());
}

TEST(Pool, AStaleNameFindsNothing) {
  Pool<Thing, 64, 16> pool;
  Thing* t = pool.take();
  const uint32_t index = t->pool_index, generation = t->pool_generation;
  EXPECT_EQ(pool.find(index, generation), t);
  pool.release(*t);
  EXPECT_EQ(pool.find(index, generation), nullptr);
  Thing* again = pool.take();
  ASSERT_EQ(again, t);
  EXPECT_EQ(pool.find(index, generation), nullptr);
  EXPECT_EQ(pool.find(again->pool_index, again->pool_generation), again);
  EXPECT_EQ(pool.find(16, 0), nullptr) << "of a chunk that does not exist";
  EXPECT_EQ(pool.find(UINT32_MAX, 0), nullptr);
}

TEST(Pool, AddressesAndNamesAreStableThroughRandomUse) {
  Random random(2);
  Pool<Thing, 256, 8> pool;
  std::vector<std::pair<Thing*, std::pair<uint32_t, uint32_t>>> out;
  std::set<std::pair<uint32_t, uint32_t>> released;
  for (int n = 0; n < 20000; ++n) {
    if (random.chance(0.52)) {
      Thing* t = pool.take();
      ASSERT_EQ(t == nullptr, out.size() == 256);
      if (t) out.push_back({t, {t->pool_index, t->pool_generation}});
    } else if (!out.empty()) {
      std::swap(out[random.below(out.size())], out.back());
      pool.release(*out.back().first);
      released.insert(out.back().second);
      out.pop_back();
    }
    ASSERT_EQ(pool.in_use(), out.size());
    if (!out.empty()) {
      const auto& [thing, name] = out[random.below(out.size())];
      ASSERT_EQ(pool.find(name.first, name.second), thing);
      ASSERT_EQ(released.count(name), 0u) << "a name was given out twice";
    }
  }
  for (const auto& name : released) ASSERT_EQ(pool.find(name.first, name.second), nullptr);
}

}  // namespace
}  // namespace weft
