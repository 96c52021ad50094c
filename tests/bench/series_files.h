// SPDX-License-Identifier: Apache-2.0

// Time series that are stored as Matrix Market files.
#ifndef CROUT_TESTS_BENCH_SERIES_FILES_H_
#define CROUT_TESTS_BENCH_SERIES_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/series_families.h"

namespace crout {

// Paths of the matrices and of their right-hand sides, step by step.
struct FileSeries {
  std::string name;
  std::vector<std::string> matrices;
  std::vector<std::string> rhs;
};

// Returns the sequences of real problems among the shared matrices in `directory`.
std::vector<FileSeries> FileSeriesIn(const std::string& directory);

// Opens a series. Exits if a file cannot be read, since a benchmark has no caller to return an
// error to.
std::unique_ptr<Sequence> OpenFileSeries(const FileSeries& files);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_FILES_H_
