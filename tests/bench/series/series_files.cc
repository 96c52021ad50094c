// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/series/series_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/io/matrix_market_reader.h"
#include "tests/bench/harness/bench_result.h"

namespace crout {
namespace {

// A dense matrix from a file, column-major.
struct FileMatrix {
  int64_t rows = 0;
  std::vector<double> values;
};

FileMatrix Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  MatrixMarketReader reader({}, nullptr);
  Check(reader.Append(text));
  Check(reader.Finish());
  const MatrixMarketHeader header = *reader.header();
  FileMatrix matrix{header.rows, {}};
  if (!header.coordinate) {
    matrix.values = reader.TakeDense();
    return matrix;
  }
  const SparseMatrix sparse = reader.TakeSparse();
  matrix.values.resize(header.rows * header.columns);
  for (int64_t j = 0; j < header.columns; ++j) {
    for (int64_t k = sparse.column_start[j]; k < sparse.column_start[j + 1]; ++k) {
      matrix.values[sparse.row[k] + j * header.rows] = sparse.value[k];
    }
  }
  return matrix;
}

class FileSequence final : public Sequence {
 public:
  FileSequence(const FileSeries& files, int64_t n)
      : Sequence(n, static_cast<int>(files.matrices.size()), DType::kFloat64), files_(files) {}

  void Next() override {
    a_ = Read(files_.matrices[next_]).values;
    b_ = Read(files_.rhs[next_]).values;
    ++next_;
  }

 private:
  const FileSeries files_;
  size_t next_ = 0;
};

// Returns the files in the directory whose names begin with `prefix`, sorted by name.
std::vector<std::string> FilesIn(const std::string& directory, const std::string& prefix) {
  std::vector<std::string> paths;
  for (const auto& file : std::filesystem::directory_iterator(directory)) {
    if (absl::StartsWith(file.path().filename().string(), prefix)) paths.push_back(file.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::vector<FileSeries> FileSeriesIn(const std::string& directory) {
  struct Place {
    const char* name;
    const char* directory;
    const char* matrices;
    const char* rhs;
  };
  constexpr Place kPlaces[] = {
      {"power flow, hourly", "seq_powerflow/ACTIVSg200_hourly", "J_", "b_"},
      {"power flow, Newton", "seq_powerflow/case1354pegase_newton", "J_", "b_"},
      {"power flow, Newton, small", "seq_powerflow/case118_newton", "J_", "b_"},
      {"resolve, asymmetric", "seq_resolve", "A_asymmetric", "b_asymmetric"},
      {"resolve, power grid", "seq_resolve", "matrix_ACTIVSg200", "rhs_ACTIVSg200"},
      {"combustion", "seq_pele/isooctane", "A_", "b_"},
      {"combustion, dodecane", "seq_pele/dodecane_lu", "A_", "b_"},
      {"combustion, drm19", "seq_pele/drm19", "A_", "b_"},
  };
  std::vector<FileSeries> all;
  for (const Place& place : kPlaces) {
    const std::string path = absl::StrCat(directory, "/", place.directory);
    all.push_back({place.name, FilesIn(path, place.matrices), FilesIn(path, place.rhs)});
    if (all.back().matrices.empty() || all.back().rhs.size() != all.back().matrices.size()) {
      Check(absl::NotFoundError(absl::StrCat(path, ": no series, or not all right-hand sides")));
    }
  }
  return all;
}

std::unique_ptr<Sequence> OpenFileSeries(const FileSeries& files) {
  return std::make_unique<FileSequence>(files, Read(files.rhs.front()).rows);
}

}  // namespace crout
