// Other libraries' sparse LU, for benchmarks alone.
#ifndef CROUT_TESTS_BENCH_SPARSE_RIVALS_H_
#define CROUT_TESTS_BENCH_SPARSE_RIVALS_H_

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/sparse_view.h"

namespace crout {

// One library with its defaults on one matrix. Calls in this order, Refactor and Solve any number
// of times. The matrix outlives the object. The program ends where the library fails.
class SparseRival {
 public:
  virtual ~SparseRival() = default;

  // Analyses and factors.
  virtual void Factor() = 0;
  // Factors again, with what Factor found from the pattern; KLU keeps its pivots, too.
  virtual void Refactor() = 0;
  // x := A^-1 x, without refinement.
  virtual void Solve(std::vector<double>& x) = 0;
};

// A library: makes the object for one matrix, which copies it into the library's form.
struct SparseLibrary {
  std::string_view name;
  std::unique_ptr<SparseRival> (*make)(const SparseView<double>& a, int64_t nonzeros);
};

// The libraries that this program was built with.
std::vector<SparseLibrary> SparseLibraries();

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_RIVALS_H_
