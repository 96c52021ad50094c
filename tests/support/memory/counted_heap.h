// SPDX-License-Identifier: Apache-2.0

// Measures how much heap memory a program allocates beyond the memory that it was granted. A
// program that links this file uses its global operators new and delete (OWN_NEW of crout_test in
// CMake).
#ifndef CROUT_TESTS_SUPPORT_MEMORY_COUNTED_HEAP_H_
#define CROUT_TESTS_SUPPORT_MEMORY_COUNTED_HEAP_H_

#include <cstddef>
#include <cstdint>

namespace crout::testing {

// All amounts are in bytes. Thread-safe, except Restart().
class CountedHeap {
 public:
  // Sets the counts of allocated and granted bytes to zero.
  static void Restart();
  // Allow `bytes` more, or fewer, allocated bytes. Call Grant before the memory is allocated and
  // Withdraw after it is freed.
  static void Grant(size_t bytes);
  static void Withdraw(size_t bytes);
  // Returns the maximum of allocated minus granted bytes since Restart().
  static int64_t MaxExcess();
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MEMORY_COUNTED_HEAP_H_
