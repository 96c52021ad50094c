// SPDX-License-Identifier: Apache-2.0

// Families of time series for benchmarks. A series has a changing matrix and right-hand side.
#ifndef CROUT_TESTS_BENCH_SERIES_SERIES_FAMILIES_H_
#define CROUT_TESTS_BENCH_SERIES_SERIES_FAMILIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace crout {

// The systems A x = b of a series, in order. They do not depend on the number of threads. Not
// thread-safe.
class Sequence {
 public:
  virtual ~Sequence() = default;

  // Advances to the next system. The first call advances to the first system. Call it at most
  // steps() times.
  virtual void Next() = 0;

  int64_t n() const { return n_; }
  int steps() const { return steps_; }
  DType dtype() const { return dtype_; }
  // The current system. a() is n x n and column-major, and b() has n elements. Complex entries have
  // interleaved real and imaginary parts.
  virtual const std::vector<double>& a() const { return a_; }
  const std::vector<double>& b() const { return b_; }
  // Returns whether each system after the first differs from the previous system by a low-rank
  // change U V^T. change() is then U (n x change_rank()), followed by V^T (change_rank() x n), both
  // column-major.
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
  // Largest change of an entry per step, relative to the largest random entry. 0: not constant.
  double change = 0;
  // Creates a series of order n or slightly less with `steps` steps. Series from files have fixed
  // orders and steps. Exits on an error.
  std::function<std::unique_ptr<Sequence>(int64_t n, int steps)> make;
  bool of_files = false;
};

// Returns all families. `matrices` is the directory of the shared matrices; if it is empty,
// families from files are omitted.
std::vector<SeriesFamily> AllSeriesFamilies(const std::string& matrices);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_SERIES_FAMILIES_H_
