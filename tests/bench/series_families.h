// SPDX-License-Identifier: Apache-2.0

// Families of time series for benchmarks: changing matrices and their right-hand sides.
#ifndef CROUT_TESTS_BENCH_SERIES_FAMILIES_H_
#define CROUT_TESTS_BENCH_SERIES_FAMILIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace crout {

// The systems of a series in order. Deterministic for any number of threads.
class Sequence {
 public:
  virtual ~Sequence() = default;

  // Advances to the next system, initially to the first. Call at most steps() times.
  virtual void Next() = 0;

  int64_t n() const { return n_; }
  int steps() const { return steps_; }
  DType dtype() const { return dtype_; }
  // The present system: a is n x n by columns, b has n elements. Complex entries have interleaved
  // real and imaginary parts.
  virtual const std::vector<double>& a() const { return a_; }
  const std::vector<double>& b() const { return b_; }
  // Whether every system after the first differs from the previous one by a low-rank change.
  // change() has the format of a series' low-rank change of rank change_rank().
  bool changes_by_rank() const { return changes_by_rank_; }
  int64_t change_rank() const { return change_rank_; }
  const std::vector<double>& change() const { return change_; }

 protected:
  Sequence(int64_t n, int steps, DType dtype);

  const int64_t n_;
  const int steps_;
  const DType dtype_;
  std::vector<double> a_;
  std::vector<double> b_;
  bool changes_by_rank_ = false;
  int64_t change_rank_ = 0;  // 0 for the first system
  std::vector<double> change_;
};

struct SeriesFamily {
  std::string name;
  // Change of each entry per step, relative to the largest random one. 0: family-specific.
  double change = 0;
  // Makes a series of about order n with that many steps. Series from files have their own order
  // and steps.
  std::function<std::unique_ptr<Sequence>(int64_t n, int steps)> make;
  bool of_files = false;
};

// Returns all families. Those of files are omitted if `matrices`, the directory of the shared
// matrices, is empty.
std::vector<SeriesFamily> AllSeriesFamilies(const std::string& matrices);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_FAMILIES_H_
