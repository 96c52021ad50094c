// SPDX-License-Identifier: Apache-2.0

// Sparse LU of other libraries, only for benchmarks.
#ifndef CROUT_TESTS_BENCH_SPARSE_SPARSE_LIBRARIES_H_
#define CROUT_TESTS_BENCH_SPARSE_SPARSE_LIBRARIES_H_

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/sparse_view.h"

namespace crout {

// A library with its defaults, for one matrix. The matrix must outlive the object. Call Factor()
// first, then Refactor() and Solve() any number of times. Exits if the library fails.
class LibrarySolver {
 public:
  virtual ~LibrarySolver() = default;

  // Analyzes and factors the matrix.
  virtual void Factor() = 0;
  // Factors again with the analysis of Factor(). KLU also reuses the pivots.
  virtual void Refactor() = 0;
  // Overwrites `x`, n elements, with A^-1 x. Uses no refinement.
  virtual void Solve(std::vector<double>& x) = 0;
};

// A library. make() creates its solver, with a copy of the matrix in the library's format.
struct SparseLibrary {
  std::string_view name;
  std::unique_ptr<LibrarySolver> (*make)(const SparseView<double>& a, int64_t nonzeros);
};

// Returns the libraries that this program was built with.
std::vector<SparseLibrary> SparseLibraries();

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_SPARSE_LIBRARIES_H_
