// SPDX-License-Identifier: Apache-2.0
// A doubly linked list whose links live in its members: joining and leaving cost no allocation and
// no search, and an element knows whether it is in the list.
//
// The list owns nothing. An element must leave before it dies; Hook's destructor sees to it.
#pragma once

namespace weft {

struct Hook {
  Hook* previous = nullptr;
  Hook* next = nullptr;

  Hook() = default;
  Hook(const Hook&) = delete;
  Hook& operator=(const Hook&) = delete;
  ~Hook() { unlink(); }

  bool linked() const { return next != nullptr; }
  void unlink() {
    if (!linked()) return;
    previous->next = next;
    next->previous = previous;
    previous = next = nullptr;
  }
};

// T derives from a Tag type that derives from Hook, or from Hook itself: one base for each list it
// can be in.
template <class T, class HookType = Hook>
class IntrusiveList {
 public:
  IntrusiveList() { end_.previous = end_.next = &end_; }
  ~IntrusiveList() {
    while (!empty()) front()->HookType::unlink();
    end_.previous = end_.next = nullptr;
  }
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return end_.next == &end_; }
  T* front() { return empty() ? nullptr : element(end_.next); }

  // An item that is in the list already moves.
  void push_back(T& item) { insert_before(item, &end_); }
  void push_front(T& item) {
    static_cast<HookType&>(item).unlink();  // first: it may be the one to stand before
    insert_before(item, end_.next);
  }

  T* pop_front() {
    T* first = front();
    if (first) static_cast<HookType*>(first)->unlink();
    return first;
  }

  T* after(T& item) {
    Hook* n = static_cast<HookType&>(item).next;
    return n == &end_ ? nullptr : element(n);
  }

  // Keeps the list sorted when most elements belong at the end.
  template <class Before>
  void insert_sorted(T& item, Before before) {
    static_cast<HookType&>(item).unlink();
    Hook* at = &end_;
    while (at->previous != &end_ && before(item, *element(at->previous))) at = at->previous;
    insert_before(item, at);
  }

 private:
  static T* element(Hook* h) { return static_cast<T*>(static_cast<HookType*>(h)); }
  static void insert_before(T& item, Hook* at) {
    HookType& hook = item;
    hook.unlink();
    hook.previous = at->previous;
    hook.next = at;
    at->previous->next = &hook;
    at->previous = &hook;
  }

  Hook end_;
};

}  // namespace weft
