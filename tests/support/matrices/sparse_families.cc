// SPDX-License-Identifier: Apache-2.0

#include "tests/support/matrices/sparse_families.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/status_macros.h"
#include "tests/support/matrices/matrices.h"
#include "tests/support/matrices/maxwell.h"
#include "tests/support/matrices/sparse_classes.h"

namespace crout::testing {
namespace {

constexpr double kLoss = 0.05;
constexpr double kWave2 = 0.4;  // about ten points per wavelength
constexpr int64_t kHalfBandwidth = 10;
constexpr int kMaxUnknowns = 10'000'000;

struct SparseClass {
  const char* prefix;
  int most;
  SparseProblem (*make)(int64_t size);
  int size;  // size in SparseClassNames
};

constexpr SparseClass kClasses[] = {
    {"poisson2d_", 4096, [](int64_t m) { return Laplacian(m, 2, 0); }, 200},
    {"poisson3d_", 256, [](int64_t m) { return Laplacian(m, 3, 0); }, 25},
    {"circuit_", kMaxUnknowns, Circuit, 20000},
    {"arrow_", kMaxUnknowns, Arrow, 50000},
    {"banded_", kMaxUnknowns, [](int64_t n) { return Banded(n, kHalfBandwidth); }, 20000},
    {"power_", kMaxUnknowns, PowerGrid, 10000},
    {"kkt_", kMaxUnknowns, Kkt, 20000},
    {"stokes_", 2048, Stokes, 80},
    {"blocks_", 2048, Blocks, 70},
    {"random_", kMaxUnknowns, Scattered, 3000},
    {"tridiagonal_", kMaxUnknowns, [](int64_t n) { return Banded(n, 1); }, 100000},
    {"helmholtz_", 4096, [](int64_t m) { return Laplacian(m, 2, kWave2); }, 150},
};

// Returns the number after `prefix` in `name` if it is in [0, most].
std::optional<int> SizeAfter(absl::string_view prefix, absl::string_view name, int most) {
  int size = 0;
  if (!absl::ConsumePrefix(&name, prefix) || !absl::SimpleAtoi(name, &size)) return std::nullopt;
  return size >= 0 && size <= most ? std::optional(size) : std::nullopt;
}

}  // namespace

absl::StatusOr<PackedSparse> SparseFamily(const std::string& name, DType dtype) {
  if (const auto m = SizeAfter("grid2d_", name, 4096)) {
    return PackEntries(GridEntries(*m, 2), int64_t{*m} * *m, dtype);
  }
  if (const auto m = SizeAfter("grid3d_", name, 256)) {
    return PackEntries(GridEntries(*m, 3), int64_t{*m} * *m * *m, dtype);
  }
  if (const auto refinements = SizeAfter("maxwell_", name, 6)) {
    const MaxwellTorus torus(*refinements, 0, IsComplex(dtype) ? kLoss : 0);
    return PackEntries(torus.Entries(), torus.n(), dtype);
  }
  for (const SparseClass& one : kClasses) {
    if (const auto size = SizeAfter(one.prefix, name, one.most)) {
      SparseProblem problem = one.make(*size);
      return PackEntries(std::move(problem.entries), problem.n, dtype);
    }
  }
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (real.file != name) continue;
    CROUT_ASSIGN_OR_RETURN(std::vector<SparseEntry> entries, ReadSparseMatrix(real));
    return PackEntries(std::move(entries), real.n, dtype);
  }
  return absl::NotFoundError(absl::StrCat("no sparse matrix '", name, "'"));
}

std::vector<std::string> SparseClassNames() {
  std::vector<std::string> names = {"grid2d_200"};
  for (const SparseClass& one : kClasses) names.push_back(absl::StrCat(one.prefix, one.size));
  return names;
}

}  // namespace crout::testing
