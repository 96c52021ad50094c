#include "tests/support/sparse_families.h"

#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/status_macros.h"
#include "tests/support/matrices.h"
#include "tests/support/maxwell.h"

namespace crout::testing {
namespace {

constexpr double kLoss = 0.05;

// What follows `prefix` in `name`, up to `most`.
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
  for (const RealMatrix& real : RealMatrixIndex()) {
    if (real.file != name) continue;
    CROUT_ASSIGN_OR_RETURN(std::vector<SparseEntry> entries, ReadSparseMatrix(real));
    return PackEntries(std::move(entries), real.n, dtype);
  }
  return absl::NotFoundError(absl::StrCat("no sparse matrix '", name, "'"));
}

}  // namespace crout::testing
