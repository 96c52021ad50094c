// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/methods.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/cuda/cudss/cudss.h"
#include "kernels/cuda/device/cuda_context.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr std::string_view kName = "cudss";
// Approximate costs in the deterministic mode, measured on an H100 (gpu_sparse_bench). The cost of
// the analysis, on one core, depends on the matrix.
constexpr double kCallSeconds = 1e-2;
constexpr double kAnalysisSeconds = 1e-6;  // per row and per entry
constexpr double kBytesPerSecond = 1e10;   // bytes of the factor
constexpr double kSolveSeconds = 1e-3;     // per column
constexpr double kSolveBytesPerSecond = 1.2e11;

double FactorBytes(const Analysis& analysis, DType dtype) {
  return static_cast<double>(analysis.factor_entries()) * static_cast<double>(SizeOf(dtype));
}

class CudaCudss final : public SparseLu {
 public:
  CudaCudss(DeviceCore& core, const CudssLibrary& library, std::shared_ptr<CudssFactors> factors)
      : core_(core),
        factors_(std::move(factors)),
        description_("sparse LU, deterministic mode, NVIDIA " + library.version()) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> FactorBytes(const Analysis& analysis, DType dtype) const override {
    return CudssFactorBytes(analysis, dtype);
  }
  absl::StatusOr<size_t> WorkspaceBytes(const Analysis&, DType, size_t) const override { return 0; }
  MemoryResource* factor_memory() const override { return factors_.get(); }
  std::optional<size_t> LargerFactor(std::span<const std::byte> factor) const override {
    const CudssFactor* const made = factors_->At(factor.data());
    return made == nullptr ? std::nullopt : made->sufficient_bytes;
  }

  double PredictSeconds(const Analysis& analysis, DType dtype) const override {
    return PredictWithoutAnalysis(analysis.n, analysis.nonzeros, dtype) +
           cuda::FactorBytes(analysis, dtype) / kBytesPerSecond;
  }
  double PredictWithoutAnalysis(int64_t n, int64_t nonzeros, DType) const override {
    return kCallSeconds + kAnalysisSeconds * static_cast<double>(n + nonzeros);
  }

  absl::StatusOr<NumericSummary> Factor(ExecutionContext& context, const Analysis& analysis,
                                        const AnySparse& a, DType dtype,
                                        std::span<std::byte> factor, std::span<std::byte> workspace,
                                        StopRequested stop,
                                        std::vector<int32_t>* postponable) const override {
    return FactorReusing(context, analysis, a, dtype, {}, factor, workspace, stop, postponable);
  }

  absl::StatusOr<NumericSummary> FactorReusing(ExecutionContext& context, const Analysis& analysis,
                                               const AnySparse& a, DType dtype,
                                               std::span<const std::byte> last,
                                               std::span<std::byte> factor, std::span<std::byte>,
                                               StopRequested stop,
                                               std::vector<int32_t>* postponable) const override {
    if (postponable != nullptr) postponable->clear();
    CudssFactor* const made = factors_->At(factor.data());
    if (made == nullptr)
      return absl::InternalError("the factor was not allocated by factor_memory()");
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    absl::StatusOr<NumericSummary> summary =
        FactorCudss(Context::From(context), factors_->handle(), analysis, a, dtype,
                    factors_->At(last.data()), *made, stop);
    CROUT_RETURN_IF_ERROR(core_.Observe(summary.status()));
    return summary;
  }

  bool AppliesScales() const override { return false; }
  bool SupportsDeterminants() const override { return false; }
  absl::StatusOr<LogDeterminant> Determinant(ExecutionContext&, const Analysis&,
                                             const NumericSummary&, std::span<const std::byte>,
                                             DType) const override {
    return absl::UnimplementedError("cuDSS computes no determinant");
  }

 private:
  DeviceCore& core_;
  const std::shared_ptr<CudssFactors> factors_;
  const std::string description_;
  const MethodTraits traits_{.name = kName,
                             .description = description_,
                             .operands = {OperandKind::kSparse},
                             .types = kAllTypes,
                             .unit_diagonal = UnitDiagonal::kL,
                             .pivoting = PivotRule::kPartial,
                             .only_by_name = true};
};

class CudaCudssSolver final : public SparseSolver {
 public:
  CudaCudssSolver(DeviceCore& core, std::shared_ptr<CudssFactors> factors)
      : core_(core), factors_(std::move(factors)) {}

  const MethodTraits& traits() const override { return traits_; }

  double PredictSparseSeconds(const Analysis& analysis, DType dtype, int64_t nrhs) const override {
    return static_cast<double>(nrhs) *
           (kSolveSeconds + FactorBytes(analysis, dtype) / kSolveBytesPerSecond);
  }
  absl::StatusOr<size_t> SparseWorkspaceBytes(const Analysis& analysis, DType dtype,
                                              int64_t) const override {
    return analysis.n * SizeOf(dtype);
  }

  absl::Status Solve(ExecutionContext& context, const FactorView& factor, Op op, double,
                     const AnyMatrix& b, std::span<std::byte> workspace) const override {
    CudssFactor* const made = factors_->At(factor.lu.data);
    if (made == nullptr)
      return absl::InternalError("the factor was not allocated by factor_memory()");
    CROUT_RETURN_IF_ERROR(core_.MakeCurrent());
    return core_.Observe(
        SolveCudss(Context::From(context), *made, *factor.analysis, op, b, workspace));
  }

 private:
  DeviceCore& core_;
  const std::shared_ptr<CudssFactors> factors_;
  const MethodTraits traits_{.name = kName,
                             .description = "substitution column by column (NVIDIA cuDSS)",
                             .operands = {OperandKind::kSparse},
                             .types = kAllTypes,
                             .solves_with = {UnitDiagonal::kL}};
};

}  // namespace

void AddCudss(DeviceCore& core, MemoryResource& memory, Catalogue& catalogue) {
  const auto lacks = [&](const absl::Status& why) {
    catalogue.absent.push_back({kName, std::string(why.message())});
  };
  const absl::StatusOr<const CudssLibrary*> library = CudssLibrary::Load();
  if (!library.ok()) return lacks(library.status());
  absl::StatusOr<std::unique_ptr<CudssHandle>> handle =
      CudssHandle::Create(**library, CudssMemory::kArenas, CudssThreads::kOne);
  if (!handle.ok()) return lacks(handle.status());
  const auto factors = std::make_shared<CudssFactors>(core, memory, *std::move(handle));
  catalogue.sparse_lus.push_back(std::make_unique<CudaCudss>(core, **library, factors));
  catalogue.solvers.push_back(std::make_unique<CudaCudssSolver>(core, factors));
}

}  // namespace crout::cuda
