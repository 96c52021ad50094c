// SPDX-License-Identifier: Apache-2.0

// Sparse LU of other libraries, for benchmarks only.
#ifndef CROUT_TESTS_BENCH_SPARSE_LIBRARIES_H_
#define CROUT_TESTS_BENCH_SPARSE_LIBRARIES_H_

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/sparse_view.h"

namespace crout {

// One library with its defaults on one matrix, which must outlive the object. Call Factor first,
// then Refactor and Solve any number of times. Exits if the library fails.
class LibrarySolver {
 public:
  virtual ~LibrarySolver() = default;

  // Analyzes and factors.
  virtual void Factor() = 0;
  // Factors again with the analysis of Factor. KLU also reuses its pivots.
  virtual void Refactor() = 0;
  // x := A^-1 x, without refinement.
  virtual void Solve(std::vector<double>& x) = 0;
};

// A library. `make` copies a matrix into the library's format.
struct SparseLibrary {
  std::string_view name;
  std::unique_ptr<LibrarySolver> (*make)(const SparseView<double>& a, int64_t nonzeros);
};

// Returns the libraries that this program was built with.
std::vector<SparseLibrary> SparseLibraries();

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SPARSE_LIBRARIES_H_
