// Time series for benchmarks: kinds of matrices that change, and what they are solved for.
#ifndef CROUT_TESTS_BENCH_SERIES_FAMILIES_H_
#define CROUT_TESTS_BENCH_SERIES_FAMILIES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/dtype.h"

namespace crout {

// The systems of a series, one after the other. Deterministic, whatever the threads.
class Sequence {
 public:
  virtual ~Sequence() = default;

  // The next system, the first one too: at most steps() times.
  virtual void Next() = 0;

  int64_t n() const { return n_; }
  int steps() const { return steps_; }
  DType dtype() const { return dtype_; }
  // Of the present system: n x n by columns, and n; of a complex one a real part and an imaginary
  // one for each entry.
  virtual const std::vector<double>& a() const { return a_; }
  const std::vector<double>& b() const { return b_; }
  // Whether all systems but the first differ from the one before by so many ranks, which change()
  // says as a low-rank change of a series arrives.
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
  int64_t change_rank_ = 0;  // of the first 0
  std::vector<double> change_;
};

struct SeriesFamily {
  std::string name;
  double change = 0;  // of each entry in a step, relative to the largest random one; 0: its own
  // Of about order n and of so many steps; one of files has its own order and steps.
  std::function<std::unique_ptr<Sequence>(int64_t n, int steps)> make;
  bool of_files = false;
};

// All families. Those of files are left out where `matrices`, the directory of the shared matrices,
// is empty.
std::vector<SeriesFamily> AllSeriesFamilies(const std::string& matrices);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_FAMILIES_H_
