// Allocations of the standard library that are refused. Whoever links this has its operator new.
#ifndef CROUT_TESTS_SUPPORT_REFUSED_ALLOCATIONS_H_
#define CROUT_TESTS_SUPPORT_REFUSED_ALLOCATIONS_H_

#include <cstddef>

namespace crout::testing {

// The next allocation of exactly `bytes` bytes, by any thread, is refused.
void RefuseSize(size_t bytes);

enum class Threads { kThis, kOthers };
// Of the allocations that those threads make from now on, the one after `passed` others is refused.
void RefuseAfter(int passed, Threads of);

// Refuses nothing more. Whether anything was refused since it was asked for.
bool StopRefusing();

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_REFUSED_ALLOCATIONS_H_
