// SPDX-License-Identifier: Apache-2.0

// Time series in Matrix Market files.
#ifndef CROUT_TESTS_BENCH_SERIES_SERIES_FILES_H_
#define CROUT_TESTS_BENCH_SERIES_SERIES_FILES_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/bench/series/series_families.h"

namespace crout {

// The paths of the matrices and of their right-hand sides, one per step.
struct FileSeries {
  std::string name;
  std::vector<std::string> matrices;
  std::vector<std::string> rhs;
};

// Returns the series of real problems in `directory`, the directory of the shared matrices.
std::vector<FileSeries> FileSeriesIn(const std::string& directory);

// Opens a series. Exits if a file cannot be read.
std::unique_ptr<Sequence> OpenFileSeries(const FileSeries& files);

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_SERIES_SERIES_FILES_H_
