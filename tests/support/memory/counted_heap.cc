// SPDX-License-Identifier: Apache-2.0

#include "tests/support/memory/counted_heap.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

// Allocated bytes minus granted bytes, and the maximum of this difference. The difference is a
// single atomic because two counters cannot be read together: a thread could read the allocated
// count, and the granted count only after other threads had freed memory and withdrawn its grant.
std::atomic<int64_t> excess_bytes = 0;
std::atomic<int64_t> worst_excess = 0;

void Raise(std::atomic<int64_t>& most, int64_t value) {
  int64_t seen = most.load();
  while (value > seen && !most.compare_exchange_weak(seen, value)) {
  }
}

void* Allocate(size_t bytes) {
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  Raise(worst_excess, excess_bytes += static_cast<int64_t>(bytes));
  return block;
}

}  // namespace

void* operator new(size_t bytes) { return Allocate(bytes); }
// std::stable_sort uses the nothrow form and works with a smaller buffer if it returns null.
void* operator new(size_t bytes, const std::nothrow_t& /*tag*/) noexcept {
  try {
    return Allocate(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* block) noexcept {
  if (block != nullptr) excess_bytes -= static_cast<int64_t>(malloc_usable_size(block));
  std::free(block);
}
void operator delete(void* block, size_t bytes) noexcept {
  if (block != nullptr) excess_bytes -= static_cast<int64_t>(bytes);
  std::free(block);
}

namespace crout::testing {

void CountedHeap::Restart() {
  excess_bytes = 0;
  worst_excess = 0;
}

void CountedHeap::Grant(size_t bytes) { excess_bytes -= static_cast<int64_t>(bytes); }

void CountedHeap::Withdraw(size_t bytes) { excess_bytes += static_cast<int64_t>(bytes); }

int64_t CountedHeap::MaxExcess() { return ::worst_excess.load(); }

}  // namespace crout::testing
