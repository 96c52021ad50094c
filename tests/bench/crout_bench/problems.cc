#include "tests/bench/crout_bench/problems.h"

#include <fnmatch.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/io/matrix_market_reader.h"
#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/families.h"

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

absl::Status CheckShape(const MatrixMarketHeader& header, const Options& options) {
  if (header.rows != header.columns) {
    return absl::FailedPreconditionError(
        absl::StrCat("is ", header.rows, " x ", header.columns, ", not square"));
  }
  if (header.rows < options.min_n || header.rows > options.max_n) {
    return absl::FailedPreconditionError(
        absl::StrCat("order ", header.rows, " is beyond the limits of this run"));
  }
  return absl::OkStatus();
}

std::vector<double> Densify(const SparseMatrix& sparse) {
  std::vector<double> dense(sparse.rows * sparse.columns, 0.0);
  for (int64_t j = 0; j < sparse.columns; ++j) {
    for (int64_t k = sparse.column_start[j]; k < sparse.column_start[j + 1]; ++k) {
      dense[sparse.row[k] + j * sparse.rows] = sparse.value[k];
    }
  }
  return dense;
}

// Stops reading once the header says that the matrix is not wanted.
absl::StatusOr<std::vector<double>> ReadDense(const fs::path& path, const Options& options,
                                              int64_t* n) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open ", path.string()));
  MatrixMarketLimits limits;
  limits.complex = false;
  MatrixMarketReader reader(limits, nullptr);
  std::vector<char> piece(kPieceBytes);
  bool checked = false;
  while (file.read(piece.data(), kPieceBytes), file.gcount() > 0) {
    CROUT_RETURN_IF_ERROR(reader.Append({piece.data(), static_cast<size_t>(file.gcount())}));
    if (!checked && reader.header().has_value()) {
      CROUT_RETURN_IF_ERROR(CheckShape(*reader.header(), options));
      checked = true;
    }
  }
  CROUT_RETURN_IF_ERROR(reader.Finish());
  CROUT_RETURN_IF_ERROR(CheckShape(*reader.header(), options));
  *n = reader.header()->rows;
  return reader.header()->coordinate ? Densify(reader.TakeSparse()) : reader.TakeDense();
}

absl::StatusOr<Problem> MakeProblem(const ProblemSource& source, int64_t n,
                                    std::vector<double> values) {
  const int64_t zeros = std::count(values.begin(), values.end(), 0.0);
  return Problem{source.name, source.source, n, n * n - zeros, std::move(values)};
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
    source.load = [source, path, &options]() -> absl::StatusOr<Problem> {
      int64_t n = 0;
      CROUT_ASSIGN_OR_RETURN(std::vector<double> values, ReadDense(path, options, &n));
      return MakeProblem(source, n, std::move(values));
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
      source.load = [source, n]() -> absl::StatusOr<Problem> {
        CROUT_ASSIGN_OR_RETURN(std::vector<double> values, Generate(source.source, n));
        return MakeProblem(source, n, std::move(values));
      };
      sources.push_back(std::move(source));
    }
  }
  if (sources.empty()) return absl::InvalidArgumentError("no matrices: --matrices or --generate");
  return sources;
}

}  // namespace crout::bench
