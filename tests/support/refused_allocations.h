// SPDX-License-Identifier: Apache-2.0

// Makes chosen allocations of the standard library fail. A program that links this file uses its
// operator new.
#ifndef CROUT_TESTS_SUPPORT_REFUSED_ALLOCATIONS_H_
#define CROUT_TESTS_SUPPORT_REFUSED_ALLOCATIONS_H_

#include <cstddef>

namespace crout::testing {

// The next allocation of exactly `bytes` bytes fails, on any thread.
void RefuseSize(size_t bytes);

enum class Threads { kThis, kOthers };
// Passes the next `passed` allocations of those threads and fails the one after.
void RefuseAfter(int passed, Threads of);

// Disables all refusals. Returns whether an allocation was refused since the last request.
bool StopRefusing();

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_REFUSED_ALLOCATIONS_H_
