// SPDX-License-Identifier: Apache-2.0

#include "tests/support/memory/refused_allocations.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include "absl/base/attributes.h"

namespace {

std::atomic<bool> refused = false;
// Size of the allocation to refuse; 0 if none.
std::atomic<size_t> refused_size = 0;
// Allocations that succeed before the refused one, by the thread that called RefuseAfter and by all
// other threads. Negative if none is refused.
std::atomic<int> until_refused_here = -1;
std::atomic<int> until_refused_elsewhere = -1;
thread_local bool here = false;  // true on the thread that called RefuseAfter

bool IsRefused(size_t bytes) {
  size_t size = bytes;
  if (bytes != 0 && refused_size.compare_exchange_strong(size, 0)) return true;
  std::atomic<int>& left = here ? until_refused_here : until_refused_elsewhere;
  return left.load(std::memory_order_relaxed) >= 0 && left-- == 0;
}

}  // namespace

// In an AddressSanitizer build, a library may use the sanitizer's operator new with this file's
// operator delete. This mismatch is harmless.
extern "C" const char* __asan_default_options() { return "alloc_dealloc_mismatch=0"; }  // NOLINT

// Not inlined, because the compiler would warn that free() does not match operator new.
ABSL_ATTRIBUTE_NOINLINE void* operator new(size_t bytes) {
  if (IsRefused(bytes)) {
    refused = true;
    throw std::bad_alloc();
  }
  void* const block = std::malloc(bytes);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
ABSL_ATTRIBUTE_NOINLINE void operator delete(void* block) noexcept { std::free(block); }
ABSL_ATTRIBUTE_NOINLINE void operator delete(void* block, size_t) noexcept { std::free(block); }

namespace crout::testing {

void RefuseSize(size_t bytes) {
  StopRefusing();
  refused_size = bytes;
}

void RefuseAfter(int passed, Threads of) {
  StopRefusing();
  here = true;
  (of == Threads::kThis ? until_refused_here : until_refused_elsewhere) = passed;
}

bool StopRefusing() {
  refused_size = 0;
  until_refused_here = -1;
  until_refused_elsewhere = -1;
  here = false;
  return refused.exchange(false);
}

}  // namespace crout::testing
