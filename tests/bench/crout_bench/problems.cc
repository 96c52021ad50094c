// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/problems.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/io/matrix_market_reader.h"
#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/families.h"
#include "tests/bench/crout_bench/mean_curvature.h"

namespace crout::bench {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPieceBytes = size_t{1} << 20;

bool IsMatrixMarket(const std::string& path) {
  return absl::EndsWith(path, ".mtx") || absl::EndsWith(path, ".mtx.gz");
}

std::string Stem(const fs::path& path) {
  const std::string name = path.filename().string();
  return name.substr(0, name.rfind(".mtx"));
}

absl::Status CheckHeader(const MatrixMarketHeader& header, const Options& options, bool complex) {
  if (header.rows != header.columns) {
    return absl::FailedPreconditionError(
        absl::StrCat("is ", header.rows, " x ", header.columns, ", not square"));
  }
  if (header.rows < options.min_n || header.rows > options.max_n) {
    return absl::FailedPreconditionError(
        absl::StrCat("order ", header.rows, " is beyond the limits of this run"));
  }
  if (header.complex() && !complex) {
    return absl::FailedPreconditionError("is complex: run it with --dtype=c128 or c64");
  }
  return absl::OkStatus();
}

// Interleaves real and imaginary parts. If `imaginary` is empty, imaginary parts are zero.
std::vector<double> Interleave(const std::vector<double>& real,
                               const std::vector<double>& imaginary) {
  std::vector<double> parts(2 * real.size(), 0.0);
  for (size_t i = 0; i < real.size(); ++i) parts[2 * i] = real[i];
  for (size_t i = 0; i < imaginary.size(); ++i) parts[2 * i + 1] = imaginary[i];
  return parts;
}

// Returns the n x n matrix, column-major, with `values` at the entries of `sparse`.
std::vector<double> Densify(const SparseMatrix& sparse, const std::vector<double>& values) {
  if (values.empty()) return {};
  std::vector<double> dense(sparse.rows * sparse.columns, 0.0);
  for (int64_t j = 0; j < sparse.columns; ++j) {
    for (int64_t k = sparse.column_start[j]; k < sparse.column_start[j + 1]; ++k) {
      dense[sparse.row[k] + j * sparse.rows] = values[k];
    }
  }
  return dense;
}

// Returns the n x n elements. Complex elements have interleaved parts.
std::vector<double> TakeValues(MatrixMarketReader& reader, bool complex) {
  std::vector<double> real;
  std::vector<double> imaginary;
  if (reader.header()->coordinate) {
    const SparseMatrix sparse = reader.TakeSparse();
    real = Densify(sparse, sparse.value);
    imaginary = Densify(sparse, sparse.imaginary);
    real.resize(sparse.rows * sparse.columns);  // a matrix without entries
  } else {
    real = reader.TakeDense();
    imaginary = reader.TakeDenseImaginary();
  }
  return complex ? Interleave(real, imaginary) : real;
}

// Reads a matrix. Fails after the header if its shape, order or type is not accepted.
absl::StatusOr<std::vector<double>> ReadDense(const fs::path& path, const Options& options,
                                              bool complex, int64_t* n) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path.string()));
  MatrixMarketReader reader({}, nullptr);
  std::vector<char> piece(kPieceBytes);
  bool checked = false;
  while (file.read(piece.data(), kPieceBytes), file.gcount() > 0) {
    CROUT_RETURN_IF_ERROR(reader.Append({piece.data(), static_cast<size_t>(file.gcount())}));
    if (!checked && reader.header().has_value()) {
      CROUT_RETURN_IF_ERROR(CheckHeader(*reader.header(), options, complex));
      checked = true;
    }
  }
  CROUT_RETURN_IF_ERROR(reader.Finish());
  CROUT_RETURN_IF_ERROR(CheckHeader(*reader.header(), options, complex));
  *n = reader.header()->rows;
  return TakeValues(reader, complex);
}

Problem MakeProblem(const ProblemSource& source, int64_t n, std::vector<double> values,
                    bool complex) {
  const int64_t parts = complex ? 2 : 1;
  int64_t nonzeros = 0;
  for (int64_t i = 0; i < n * n; ++i) {
    const double* element = values.data() + i * parts;
    nonzeros += element[0] != 0 || element[parts - 1] != 0 ? 1 : 0;
  }
  return Problem{source.name, source.source, n, nonzeros, std::move(values), complex};
}

// Returns a function that returns the matrix of each next step, after the family's matrix.
std::function<std::vector<double>()> StepsOfMeanCurvature(int64_t grid) {
  auto flow = std::make_shared<MeanCurvatureFlow>(grid);
  flow->Advance();
  return [flow] {
    flow->Advance();
    return flow->Matrix();
  };
}

absl::Status ListFiles(const Options& options, std::vector<ProblemSource>& sources) {
  if (options.matrices.empty()) return absl::OkStatus();
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::recursive_directory_iterator at(options.matrices, error), end; at != end;
       at.increment(error)) {
    const std::string relative = fs::relative(at->path(), options.matrices).string();
    if (at->is_regular_file() && IsMatrixMarket(relative) &&
        fnmatch(options.match.c_str(), relative.c_str(), FNM_EXTMATCH) == 0) {
      paths.push_back(at->path());
    }
  }
  if (error) return absl::NotFoundError(absl::StrCat(options.matrices, ": ", error.message()));
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    ProblemSource source{Stem(path), fs::relative(path, options.matrices).string(), nullptr};
    source.load = [source, path, &options](bool complex) -> absl::StatusOr<Problem> {
      int64_t n = 0;
      CROUT_ASSIGN_OR_RETURN(std::vector<double> values, ReadDense(path, options, complex, &n));
      return MakeProblem(source, n, std::move(values), complex);
    };
    sources.push_back(std::move(source));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<ProblemSource>> ListProblems(const Options& options) {
  std::vector<ProblemSource> sources;
  CROUT_RETURN_IF_ERROR(ListFiles(options, sources));
  for (const FamilyOrders& family : options.generate) {
    for (const int64_t n : family.orders) {
      ProblemSource source{absl::StrCat(family.family, n), family.family, nullptr};
      source.load = [source, n](bool complex) -> absl::StatusOr<Problem> {
        CROUT_ASSIGN_OR_RETURN(std::vector<double> values, Generate(source.source, n, complex));
        CROUT_ASSIGN_OR_RETURN(const int64_t order, OrderOf(source.source, n));
        Problem problem = MakeProblem(source, order, std::move(values), complex);
        if (source.source == "mcf" && !complex) problem.steps = StepsOfMeanCurvature(n);
        return problem;
      };
      sources.push_back(std::move(source));
    }
  }
  if (sources.empty()) return absl::InvalidArgumentError("no matrices: --matrices or --generate");
  return sources;
}

}  // namespace crout::bench
