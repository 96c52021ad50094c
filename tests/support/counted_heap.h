// What a program allocates beside what it was granted. Linked into a program, it takes the place of
// the global operator new and delete: crout_test's OWN_NEW.
#ifndef CROUT_TESTS_SUPPORT_COUNTED_HEAP_H_
#define CROUT_TESTS_SUPPORT_COUNTED_HEAP_H_

#include <cstddef>
#include <cstdint>

namespace crout::testing {

// Thread-safe, but for Restart().
class CountedHeap {
 public:
  // From now on nothing is allocated and nothing granted.
  static void Restart();
  // A grant is given before its memory is taken, and withdrawn after that is free.
  static void Grant(size_t bytes);
  static void Withdraw(size_t bytes);
  // The most by which what was allocated exceeded what was granted, since Restart().
  static int64_t MostExcess();
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_COUNTED_HEAP_H_
