// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/series/series_matrix.h"

#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/input_checks.h"
#include "kernels/matrix_ops.h"
#include "kernels/sparse_ops.h"
#include "kernels/sparse_view.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Returns the update kept with the last step's matrix, if there is one.
std::optional<LowRankUpdate> KeptUpdate(const SeriesStepPlan& plan, const SeriesStart& start) {
  const int64_t rank = plan.matrix.update_rank;
  if (rank == 0) return std::nullopt;
  return LowRankUpdate(start.matrix->parts[kUpdatePart].data(), plan.rhs.rows, rank,
                       plan.vector_type);
}

// One ReadSeriesMatrix call. Owns what enqueued work uses, except the buffers.
class MatrixReader {
 public:
  MatrixReader(ExecutionContext& context, const SeriesStepPlan& plan, const SeriesStart& start,
               JobBuffers& buffers)
      : context_(context),
        plan_(plan),
        start_(start),
        last_(LastMatrix(plan, start)),
        map_(start.map),
        buffers_(buffers),
        packed_(plan.matrix.shape) {
    packed_.data = buffers[plan.matrix_upload].data();
  }

  absl::StatusOr<FactorSummary> Read();

 private:
  // A := the existing matrix with the change.
  absl::Status Change();
  absl::Status SetEntries();
  absl::Status AddLowRank();
  absl::Status SumValues();

  MatrixOps& ops() { return context_.ops(); }
  int64_t n() const { return packed_.rows; }
  AnyMatrix DenseA() const { return {buffers_[plan_.a].data(), packed_.dtype, n(), n(), n()}; }

  ExecutionContext& context_;
  const SeriesStepPlan& plan_;
  const SeriesStart& start_;
  const Factorization* const last_;
  const Factorization* const map_;
  JobBuffers& buffers_;
  PackedMatrix packed_;  // A as received, or as changed
};

absl::StatusOr<FactorSummary> MatrixReader::Read() {
  FactorSummary matrix;
  matrix.n = n();
  if (last_ != nullptr && !plan_.matrix.change) {
    const FactorSummary& kept = last_->summary;
    matrix.matrix_dtype = kept.matrix_dtype;
    matrix.norm_one = kept.norm_one;
    matrix.norm_inf = kept.norm_inf;
    matrix.matrix_nonzeros = kept.matrix_nonzeros;
    return matrix;
  }
  SyncOnExit sync(context_);
  if (plan_.matrix.change) CROUT_RETURN_IF_ERROR(Change());
  const std::optional<int64_t> nonzeros = plan_.matrix.nonzeros;
  CROUT_RETURN_IF_ERROR(
      nonzeros ? context_.sparse_ops()->Inspect(
                     {buffers_[plan_.a].data(), packed_.dtype, n(), *nonzeros}, packed_.dtype)
               : ops().Import(packed_, DenseA()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  sync.Dismiss();
  const MatrixStats& stats = context_.report().matrix;
  CROUT_RETURN_IF_ERROR(
      CheckFinite(stats, packed_, plan_.matrix.change ? "change: the changed matrix" : "matrix"));
  if (plan_.a != plan_.matrix_upload) buffers_.Take(plan_.matrix_upload);  // no longer needed
  matrix.matrix_dtype = packed_.dtype;
  matrix.norm_one = stats.norm_one;
  matrix.norm_inf = stats.norm_inf;
  matrix.matrix_nonzeros = nonzeros.value_or(0);
  return matrix;
}

absl::Status MatrixReader::Change() {
  if (plan_.matrix.change->kind == MatrixChange::Kind::kValues) return SumValues();
  const Buffer& base = last_->parts[kMatrixPart];
  CROUT_RETURN_IF_ERROR(ops().CopyOnDevice(base.data(), DenseA().data, base.size()));
  packed_.data = DenseA().data;
  packed_.layout = Layout::kColumnMajor;  // layout of a kept matrix
  return plan_.matrix.change->kind == MatrixChange::Kind::kEntries ? SetEntries() : AddLowRank();
}

absl::Status MatrixReader::SetEntries() {
  const EntryList entries(buffers_[plan_.matrix_upload].data(), packed_.dtype,
                          plan_.matrix.change->size);
  CROUT_RETURN_IF_ERROR(ops().SetEntries(entries, DenseA()));
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const EntryStats& stats = context_.report().entries;
  if (stats.first_outside >= 0) {
    return absl::InvalidArgumentError(absl::StrCat("change: entry ", stats.first_outside,
                                                   " (0-based) is outside the matrix of order ",
                                                   n(), "; rows and columns are 0-based"));
  }
  if (stats.first_contradicted < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("change: entry ", stats.first_contradicted,
                   " (0-based) repeats a position with another value. Send each entry once"));
}

absl::Status MatrixReader::AddLowRank() {
  const int64_t rank = plan_.matrix.change->size;
  const DType dtype = packed_.dtype;
  std::byte* const data = buffers_[plan_.matrix_upload].data();
  const AnyMatrix u{data, dtype, n(), rank, n()};
  const AnyMatrix v{data + n() * rank * static_cast<int64_t>(SizeOf(dtype)), dtype, rank, n(),
                    rank};
  CROUT_RETURN_IF_ERROR(ops().Multiply(1, Op::kNone, u, v, 1, DenseA()));
  if (plan_.rank == 0) return absl::OkStatus();
  const std::optional<LowRankUpdate> before = KeptUpdate(plan_, start_);
  return ExtendUpdate(ops(), before ? &*before : nullptr, u, v,
                      StepUpdate(plan_, start_, buffers_));
}

absl::Status MatrixReader::SumValues() {
  const Buffer& a = buffers_[plan_.a];
  std::byte* elements = a.data();
  if (plan_.matrix.nonzeros) {
    // Only the values change.
    CROUT_RETURN_IF_ERROR(
        ops().CopyOnDevice(last_->parts[kSparseMatrixPart].data(), a.data(), a.size()));
    elements += SparseLayout(n(), *plan_.matrix.nonzeros, packed_.dtype).value;
  }
  const ValueMap map(map_->parts[kValueMapPart].data(), plan_.matrix.change->map);
  CROUT_RETURN_IF_ERROR(
      ops().SumValues(map, packed_.dtype, buffers_[plan_.matrix_upload].data(), elements));
  packed_.data = a.data();
  packed_.layout = Layout::kColumnMajor;
  CROUT_RETURN_IF_ERROR(context_.Synchronize());
  const int64_t line = context_.report().values.first_not_real;
  if (line < 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("change: value ", line,
                   " (0-based) is on the diagonal and has an imaginary part; the diagonal of a "
                   "hermitian matrix is real"));
}

// Returns true if a change by values has its map, and the map fits the form in which the matrix is
// stored.
bool HasMap(const SeriesStepPlan& plan, const SeriesStart& start) {
  const ValueMapShape& map = plan.matrix.change->map;
  const int64_t elements = plan.matrix.nonzeros.value_or(plan.rhs.rows * plan.rhs.rows);
  return start.map != nullptr && map.elements == elements &&
         start.map->parts[kValueMapPart].size() == map.bytes();
}

}  // namespace

const Factorization* LastMatrix(const SeriesStepPlan& plan, const SeriesStart& start) {
  switch (plan.matrix.source) {
    case SeriesSource::kUpload:
      return nullptr;
    case SeriesSource::kKept:
      return start.matrix;
    case SeriesSource::kFactor:
      return start.factor;
  }
  return nullptr;
}

absl::Status CheckLastMatrix(const SeriesStepPlan& plan, const SeriesStart& start) {
  if (plan.matrix.source == SeriesSource::kUpload) return absl::OkStatus();
  const Factorization* last = LastMatrix(plan, start);
  const std::string_view part = plan.matrix.nonzeros ? kSparseMatrixPart : kMatrixPart;
  const bool needs_update = plan.rank > 0 && plan.matrix.update_rank > 0;
  const std::optional<MatrixChange>& change = plan.matrix.change;
  const bool by_values = change && change->kind == MatrixChange::Kind::kValues;
  if (last != nullptr && last->summary.n == plan.rhs.rows && last->parts[part] &&
      (last->parts[kUpdatePart] || !needs_update) && (!by_values || HasMap(plan, start))) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the matrix of the last step is not stored. Send the whole matrix");
}

LowRankUpdate StepUpdate(const SeriesStepPlan& plan, const SeriesStart& start,
                         const JobBuffers& buffers) {
  if (!plan.matrix.change) return *KeptUpdate(plan, start);
  return {buffers[plan.update].data(), plan.rhs.rows, plan.rank, plan.vector_type};
}

absl::StatusOr<FactorSummary> ReadSeriesMatrix(ExecutionContext& context,
                                               const SeriesStepPlan& plan, const SeriesStart& start,
                                               JobBuffers& buffers) {
  return MatrixReader(context, plan, start, buffers).Read();
}

}  // namespace crout
