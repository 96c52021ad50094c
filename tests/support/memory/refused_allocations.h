// SPDX-License-Identifier: Apache-2.0

// Makes selected calls of operator new throw std::bad_alloc. A program that links this file uses
// its global operators new and delete.
#ifndef CROUT_TESTS_SUPPORT_MEMORY_REFUSED_ALLOCATIONS_H_
#define CROUT_TESTS_SUPPORT_MEMORY_REFUSED_ALLOCATIONS_H_

#include <cstddef>

namespace crout::testing {

// The following two functions replace an earlier request.

// Fails the next allocation of exactly `bytes` bytes, on any thread.
void RefuseSize(size_t bytes);

enum class Threads { kThis, kOthers };
// Fails one allocation by the calling thread or by the other threads, after `passed` that succeed.
void RefuseAfter(int passed, Threads of);

// Cancels the request. Returns whether it made an allocation fail.
bool StopRefusing();

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_MEMORY_REFUSED_ALLOCATIONS_H_
