// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/sparse/cudss.h"

#include "kernels/util/status_macros.h"

namespace crout {
namespace {

std::vector<int64_t> RowStarts(const AnySparse& a) {
  const int64_t* const begin = a.As<double>().row_start;
  return {begin, begin + a.n + 1};
}

std::vector<int32_t> Columns(const AnySparse& a) {
  const int32_t* const begin = a.As<double>().column;
  return {begin, begin + a.nonzeros};
}

std::vector<double> ValuesByRows(const AnySparse& a) {
  const SparseView<double> view = a.As<double>();
  std::vector<double> values(a.nonzeros);
  for (int64_t e = 0; e < a.nonzeros; ++e) values[e] = view.value[view.position[e]];
  return values;
}

absl::Status Synchronize(const absl::Status& status) {
  CROUT_RETURN_IF_ERROR(status);
  return cuda::CudaStatus(cudaDeviceSynchronize(), "cuDSS");
}

}  // namespace

CudssSolver::CudssSolver(const cuda::CudssLibrary& library, const AnySparse& a,
                         const std::vector<double>& b, bool deterministic)
    : library_(library),
      n_(a.n),
      nonzeros_(a.nonzeros),
      columns_(static_cast<int64_t>(b.size()) / a.n),
      deterministic_(deterministic),
      row_start_(RowStarts(a)),
      column_(Columns(a)),
      value_(ValuesByRows(a)),
      b_(b),
      x_(b.size()) {}

absl::Status CudssSolver::Analyze() {
  system_.reset();
  const cuda::CudssMatrix matrix = {DType::kFloat64, n_,          nonzeros_, row_start_.get(),
                                    column_.get(),   value_.get()};
  const cuda::CudssOptions options = {.deterministic = deterministic_,
                                      .matching = cuda::CudssMatching::kAutomatic};
  CROUT_ASSIGN_OR_RETURN(handle_, cuda::CudssHandle::Create(library_, cuda::CudssMemory::kDriver,
                                                            cuda::CudssThreads::kAllCores));
  CROUT_ASSIGN_OR_RETURN(system_, cuda::CudssSystem::Create(*handle_, matrix, Vectors(1), options));
  return Synchronize(system_->Analyze(nullptr));
}

absl::Status CudssSolver::CheckAnalyzed() const {
  return system_ != nullptr ? absl::OkStatus()
                            : absl::FailedPreconditionError("cuDSS did not analyse it");
}

absl::Status CudssSolver::Factor() {
  CROUT_RETURN_IF_ERROR(CheckAnalyzed());
  return Synchronize(system_->Factor(nullptr));
}

absl::Status CudssSolver::Refactor() {
  CROUT_RETURN_IF_ERROR(CheckAnalyzed());
  return Synchronize(system_->Factor(nullptr, /*again=*/true));
}

absl::Status CudssSolver::Solve(int64_t columns) {
  CROUT_RETURN_IF_ERROR(CheckAnalyzed());
  return Synchronize(system_->Solve(Op::kNone, Vectors(columns), nullptr));
}

absl::StatusOr<cuda::CudssFindings> CudssSolver::Findings() {
  CROUT_RETURN_IF_ERROR(CheckAnalyzed());
  return system_->Findings();
}

absl::StatusOr<size_t> CudssSolver::DeviceBytes() {
  CROUT_RETURN_IF_ERROR(CheckAnalyzed());
  return system_->DeviceBytes();
}

void CudssSolver::SetFirst(const std::vector<double>& b) {
  CheckCuda(cudaMemcpy(b_.get(), b.data(), n_ * sizeof(double), cudaMemcpyHostToDevice));
}

}  // namespace crout
