// SPDX-License-Identifier: Apache-2.0

#include "server/engine/plan/values_step.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"
#include "kernels/util/digest.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"
#include "server/engine/plan/options.h"

namespace crout {
namespace {

// Refuses options that require a dense method or a new analysis.
absl::Status CheckOptions(const FactorRequest& request, const Analysis& analysis) {
  const bool by_other_threshold =
      request.pivot_threshold > 0 && request.pivot_threshold != analysis.pivot_threshold;
  if (!request.names_algorithm() && request.equilibrate == EquilibrateMode::kAuto &&
      !request.parameters && request.precision == RequestedPrecision::kFactorType &&
      !by_other_threshold) {
    return absl::OkStatus();
  }
  return BadField(
      "options",
      "values alone are factored by a sparse method and by the analysis of the matrix "
      "before: leave out equilibrate, parameters, precision, another pivot_threshold and dense "
      "methods, or send the matrix in full");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ValuesStep>> ValuesStep::Create(Engine& engine,
                                                               const MatrixSpec& matrix,
                                                               const FactorRequest& request,
                                                               FactorCache::Pin& last) {
  CROUT_ASSIGN_OR_RETURN(
      const PayloadSpec spec,
      CheckPayload(matrix, "matrix", engine.limits, *last.slot().device, PayloadRole::kNextMatrix));
  auto step = std::unique_ptr<ValuesStep>(new ValuesStep(engine, spec, last));
  FactorRequest named = request;
  CROUT_RETURN_IF_ERROR(step->sparse_.ExtractMethodName(/*may_be_sparse=*/true, &named));
  CROUT_RETURN_IF_ERROR(step->CheckPattern(matrix.pattern_digest));
  const SparseSummary& known = *last.summary().sparse;
  CROUT_RETURN_IF_ERROR(CheckOptions(named, *known.analysis));
  CROUT_ASSIGN_OR_RETURN(const FactorizeOptions options, OptionsFor(named, spec.shape.dtype));
  const SparseChoiceInput input = {.request = &named, .dense = &options};
  CROUT_RETURN_IF_ERROR(step->sparse_.CheckType(input));
  // The values are copied directly to their position in the matrix.
  const SparseLayout layout(known.analysis->n, known.analysis->nonzeros, spec.shape.dtype);
  step->upload_.PlaceInBlock(layout.bytes, layout.value);
  CROUT_RETURN_IF_ERROR(step->sparse_.PlanForPattern(known, spec.shape.dtype, input));
  return step;
}

absl::Status ValuesStep::CheckPattern(const std::string& digest) const {
  const FactorSummary& last = last_.summary();
  const std::string& field = upload_.field();
  if (!last.sparse || !last_.has_matrix()) {
    return FieldError(absl::StatusCode::kFailedPrecondition, field,
                      "values alone need the positions of a sparse factor's matrix that was kept: "
                      "send the matrix in full");
  }
  const Analysis& analysis = *last.sparse->analysis;
  const PackedMatrix& values = upload_.shape();
  const auto mismatch = [&](const std::string& description) {
    return WithReason(FieldError(absl::StatusCode::kFailedPrecondition,
                                 absl::StrCat(field, ".values"), description),
                      kReasonPatternMismatch);
  };
  if (values.rows != analysis.nonzeros) {
    return mismatch(absl::StrCat(values.rows, " values, but the handle's matrix has ",
                                 analysis.nonzeros, " positions: send the matrix in full"));
  }
  if (!IsDigestText(digest)) {
    return BadField(absl::StrCat(field, ".values.pattern_digest"),
                    "not 16 lower-case hexadecimal digits: send the digest of the pattern that the "
                    "values belong to, as in Factor.sparse.pattern_digest");
  }
  if (digest != PatternText(analysis.pattern)) {
    return mismatch(
        absl::StrCat("the values belong to another pattern than version ", last_.version(),
                     " of the handle's factor, with as many positions: send the matrix in full"));
  }
  if (values.dtype != last.matrix_dtype) {
    return BadField(absl::StrCat(field, ".values.dtype"),
                    absl::StrCat(ToAbsl(NameOf(values.dtype)), ", but the handle's matrix is ",
                                 ToAbsl(NameOf(last.matrix_dtype)),
                                 ": send values of its type, or the matrix in full"));
  }
  return absl::OkStatus();
}

absl::StatusOr<MemoryNeed> ValuesStep::Plan() {
  const JobBytes& bytes = sparse_.plan()->bytes;
  promotion_bytes_ = last_.promotion_bytes();
  return MemoryNeed{.device = FactorCache::Charge(bytes.peak) + promotion_bytes_,
                    .host = bytes.report};
}

absl::StatusOr<Buffer> ValuesStep::ReplaceValues(ExecutionContext& context,
                                                 const Factorization& last, CallTimings& timings) {
  const PackedMatrix& values = upload_.shape();
  const SparseLayout layout(order(), values.rows, values.dtype);
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, upload_.Take(context, timings));
  SyncOnExit sync(context);
  const auto copy = [&](size_t begin, size_t end) {
    return context.ops().CopyOnDevice(last.sparse_matrix().data() + begin, matrix.data() + begin,
                                      end - begin);
  };
  CROUT_RETURN_IF_ERROR(copy(0, layout.value));
  CROUT_RETURN_IF_ERROR(copy(layout.value + values.bytes(), layout.bytes));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return matrix;
}

absl::StatusOr<FactorResult> ValuesStep::Run(ExecutionContext& context, const JobControl& control,
                                             CallTimings& timings) {
  bool promoted = false;
  CROUT_ASSIGN_OR_RETURN(
      const Factorization* last,
      last_.OnDevice(context, memory_.device.Split(promotion_bytes_), &promoted));
  CROUT_ASSIGN_OR_RETURN(Buffer matrix, ReplaceValues(context, *last, timings));
  KernelTimings kernel;
  CROUT_ASSIGN_OR_RETURN(Factorization made,
                         sparse_.Factor(context, last, std::move(matrix), memory_, upload_.tenant(),
                                        control.stop_factoring, kernel));
  timings.Add(kernel);
  memory_.host.Release();
  FactorResult result;
  result.factor = MakeNewFactor(std::move(made), kernel.factor);
  ShrinkToFactor(result.factor);
  result.factor.nnz = upload_.shape().rows;
  return result;
}

}  // namespace crout
