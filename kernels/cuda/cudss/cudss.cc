// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/cudss/cudss.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/cudss/gather_values.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/execution_context.h"
#include "kernels/sparse/numeric_findings.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr size_t RoundUp(size_t bytes) {
  return (bytes + CudssArena::kAlignment - 1) / CudssArena::kAlignment * CudssArena::kAlignment;
}

// Offsets in the block.
struct Layout {
  Layout(int64_t n, int64_t nonzeros, DType dtype)
      : column(RoundUp((n + 1) * sizeof(int64_t))),
        value(column + RoundUp(nonzeros * sizeof(int32_t))),
        arena(value + RoundUp(nonzeros * SizeOf(dtype))) {}

  size_t row_start = 0;
  size_t column;
  size_t value;
  size_t arena;  // extends to the end of the block
};

// Prediction of cuDSS's own memory, fitted to the estimates of version 1.0.0 on an H100 for grids,
// a full matrix and all four types; includes the margin of ArenaFor. It counts numbers for the
// factor (kPerFactorEntry per entry), for the buffer in which the deterministic mode sums before it
// adds to the largest front, and a constant. It also counts bytes of indices per row and per entry
// of A.
constexpr double kPerFactorEntry = 1.25;
constexpr double kPerSquaredFrontOrder = 55;  // per squared number of its eliminated unknowns
constexpr double kAlways = 4.2e6;
constexpr size_t kBytesPerRow = 256;
constexpr size_t kBytesPerEntry = 160;
// Margin on an estimate, for rounded pieces and the gaps between them: one byte in kGaps, and at
// least kMinGaps.
constexpr size_t kGaps = 16;
constexpr size_t kMinGaps = size_t{1} << 20;

// The arena size for the memory that the library expects to use.
size_t ArenaFor(size_t bytes) { return RoundUp(bytes + bytes / kGaps + kMinGaps); }

// One factorization.
class Numeric {
 public:
  Numeric(Context& context, const Analysis& analysis, DType dtype, CudssFactor& factor,
          StopRequested stop)
      : context_(context),
        analysis_(analysis),
        dtype_(dtype),
        layout_(analysis.n, analysis.nonzeros, dtype),
        factor_(factor),
        stop_(stop) {}

  absl::StatusOr<NumericSummary> Run(CudssHandle& handle, const AnySparse& a, CudssFactor* last) {
    CROUT_RETURN_IF_ERROR(Put(a));
    CROUT_RETURN_IF_ERROR(Describe(handle, last));
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    CROUT_RETURN_IF_ERROR(Analyze());
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    CROUT_RETURN_IF_ERROR(CheckArenaStatus(factor_.system->Factor(context_.stream())));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    CROUT_RETURN_IF_ERROR(CheckNotStopped(stop_));
    CROUT_ASSIGN_OR_RETURN(const CudssFindings found, factor_.system->Findings());
    if (found.info != 0) {
      return absl::InternalError(
          absl::StrCat("cuDSS reported error ", found.info, " on the device"));
    }
    NumericSummary summary;
    summary.perturbed_pivots = found.perturbed_pivots;
    summary.pivot_growth = 0;
    // cuDSS treats the pattern as symmetric: L has as many entries as U without its diagonal.
    const int64_t upper = (found.entries + analysis_.n) / 2;
    summary.counts = {found.entries - upper, upper};
    return summary;
  }

 private:
  // Copies A, row by row and in the factor's type, to the block.
  absl::Status Put(const AnySparse& a) {
    const SparseLayout from(a.n, a.nonzeros, a.dtype);
    const cudaStream_t stream = context_.stream();
    const auto copy = [&](size_t to, size_t at, size_t bytes) {
      return CudaStatus(
          cudaMemcpyAsync(At(to), a.data + at, bytes, cudaMemcpyDeviceToDevice, stream),
          "cudaMemcpyAsync");
    };
    CROUT_RETURN_IF_ERROR(copy(layout_.row_start, from.row_start, (a.n + 1) * sizeof(int64_t)));
    CROUT_RETURN_IF_ERROR(copy(layout_.column, from.column, a.nonzeros * sizeof(int32_t)));
    CROUT_RETURN_IF_CUDA_ERROR(LaunchGatherValues(a, dtype_, At(layout_.value), stream));
    return absl::OkStatus();
  }

  absl::Status Describe(CudssHandle& handle, CudssFactor* last) {
    factor_.arena = std::make_unique<CudssArena>(
        std::span(At(layout_.arena), factor_.block.size() - layout_.arena));
    const CudssMatrix matrix = {dtype_,
                                analysis_.n,
                                analysis_.nonzeros,
                                reinterpret_cast<const int64_t*>(At(layout_.row_start)),
                                reinterpret_cast<const int32_t*>(At(layout_.column)),
                                At(layout_.value)};
    CudssOptions options;
    options.matching = analysis_.matched ? CudssMatching::kLargestProduct : CudssMatching::kNone;
    options.memory = factor_.arena.get();
    // Create() uses the vectors' shape only. The values serve as vectors, because there are at
    // least as many of them as rows.
    const CudssVectors vectors = {At(layout_.value), At(layout_.value)};
    CROUT_ASSIGN_OR_RETURN(factor_.system, CudssSystem::Create(handle, matrix, vectors, options));
    if (last == nullptr || last->system == nullptr) return absl::OkStatus();
    const absl::StatusOr<CudssOrdering> ordering = last->system->Ordering();
    if (absl::IsUnavailable(ordering.status())) return ordering.status();
    // Reusing the ordering is optional. If the library has none to return, for instance for
    // matrices that it does not dissect, it orders again.
    return ordering.ok() ? factor_.system->Use(*ordering) : absl::OkStatus();
  }

  absl::Status Analyze() {
    CROUT_RETURN_IF_ERROR(CheckArenaStatus(factor_.system->Analyze(context_.stream())));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    CROUT_ASSIGN_OR_RETURN(const size_t expected, factor_.system->DeviceBytes());
    const size_t arena = ArenaFor(expected);
    if (arena <= factor_.arena->bytes()) return absl::OkStatus();
    factor_.sufficient_bytes = layout_.arena + arena;
    return TooSmall();
  }

  // Checks the status of a phase. If the arena was too small, because there is no estimate yet or
  // the phase exceeded it, requests a block with twice the arena. Only the arena's own record
  // decides this: the library also reports other failures as failed allocations, and may report
  // this one differently.
  absl::Status CheckArenaStatus(const absl::Status& status) {
    // Always reset: a refusal that the library recovered from must not count against a later phase.
    const bool refused = factor_.arena->ConsumeRefusal();
    if (status.ok() || absl::IsUnavailable(status)) return status;
    if (!refused) {
      return absl::IsResourceExhausted(status) ? absl::InternalError(status.message()) : status;
    }
    factor_.sufficient_bytes = layout_.arena + 2 * factor_.arena->bytes();
    return TooSmall();
  }

  absl::Status TooSmall() const {
    return absl::ResourceExhaustedError(absl::StrCat(
        "cuDSS needs about ", *factor_.sufficient_bytes,
        " bytes of device memory for this factor; ", factor_.block.size(), " bytes were reserved"));
  }

  std::byte* At(size_t offset) const { return factor_.block.data() + offset; }

  Context& context_;
  const Analysis& analysis_;
  const DType dtype_;
  const Layout layout_;
  CudssFactor& factor_;
  const StopRequested stop_;
};

}  // namespace

size_t CudssFactorBytes(const Analysis& analysis, DType dtype) {
  int64_t largest = 0;
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    largest = std::max(largest, analysis.eliminated(f));
  }
  const double numbers = kPerFactorEntry * static_cast<double>(analysis.factor_entries()) +
                         kPerSquaredFrontOrder * static_cast<double>(largest * largest) + kAlways;
  return Layout(analysis.n, analysis.nonzeros, dtype).arena +
         RoundUp(static_cast<size_t>(numbers * static_cast<double>(SizeOf(dtype))) +
                 kBytesPerRow * analysis.n + kBytesPerEntry * analysis.nonzeros);
}

absl::StatusOr<NumericSummary> FactorCudss(Context& context, CudssHandle& handle,
                                           const Analysis& analysis, const AnySparse& a,
                                           DType dtype, CudssFactor* last, CudssFactor& factor,
                                           StopRequested stop) {
  CROUT_RETURN_IF_ERROR(CheckFits(analysis, a, dtype));
  if (factor.block.size() < Layout(analysis.n, analysis.nonzeros, dtype).arena) {
    return absl::InvalidArgumentError("the factor block is too small for the matrix");
  }
  if (analysis.n == 0) return NumericSummary();
  SyncOnExit sync(context);
  return Numeric(context, analysis, dtype, factor, stop).Run(handle, a, last);
}

absl::Status SolveCudss(Context& context, CudssFactor& factor, const Analysis& analysis, Op op,
                        const AnyMatrix& b, std::span<std::byte> workspace) {
  if (b.rows != analysis.n || analysis.unmatched_row >= 0 || analysis.kept > 0) {
    return absl::InvalidArgumentError("the right-hand side does not match the factor");
  }
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  if (factor.system == nullptr)
    return absl::FailedPreconditionError("cuDSS has no factor of this matrix");
  const size_t bytes = b.rows * SizeOf(b.dtype);
  for (int64_t j = 0; j < b.cols; ++j) {
    std::byte* const column = b.data + j * b.ld * SizeOf(b.dtype);
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(workspace.data(), column, bytes,
                                               cudaMemcpyDeviceToDevice, context.stream()));
    CROUT_RETURN_IF_ERROR(factor.system->Solve(op, {workspace.data(), column}, context.stream()));
  }
  return absl::OkStatus();
}

}  // namespace crout::cuda
