// SPDX-License-Identifier: Apache-2.0

#ifndef CROUT_SERVER_ENGINE_CACHE_LIST_NODE_H_
#define CROUT_SERVER_ENGINE_CACHE_LIST_NODE_H_

#include <list>

namespace crout {

// A preallocated node of a std::list of `T*`. Linking and unlinking it allocates nothing.
template <class T>
class ListNode {
 public:
  explicit ListNode(T* value) : unlinked_{value}, position_(unlinked_.begin()) {}
  ListNode(const ListNode&) = delete;  // The list refers to it.
  ListNode& operator=(const ListNode&) = delete;

  bool linked() const { return unlinked_.empty(); }
  // Appends the node to a list.
  void Link(std::list<T*>& list) noexcept { list.splice(list.end(), unlinked_); }
  void Unlink(std::list<T*>& list) noexcept { unlinked_.splice(unlinked_.end(), list, position_); }

 private:
  std::list<T*> unlinked_;                           // contains the node while no other list does
  const typename std::list<T*>::iterator position_;  // valid in either list
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_LIST_NODE_H_
