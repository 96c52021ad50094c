// SPDX-License-Identifier: Apache-2.0

// Runs the multifrontal method of a device on matrices, factors and right-hand sides in host
// memory.
#ifndef CROUT_TESTS_KERNELS_MULTIFRONTAL_MULTIFRONTAL_TESTING_H_
#define CROUT_TESTS_KERNELS_MULTIFRONTAL_MULTIFRONTAL_TESTING_H_

#include <cstddef>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/lu_algorithm.h"
#include "kernels/sparse_lu.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/sparse_lu_testing.h"

namespace crout::testing {

inline constexpr auto kNeverStop = [] { return false; };

// A factor whose block is in host memory. Each solve copies it to the device.
struct Factor {
  Analysis analysis;
  NumericSummary summary;
  std::vector<std::byte> block;
  DType dtype;
};

// `device`, which must outlive this object, must have the method. Functions return the errors of
// the analysis, of the method and of the device. Used by one thread at a time.
class MultifrontalRunner {
 public:
  explicit MultifrontalRunner(Device& device) : device_(device) {
    auto context = device.CreateContext();
    EXPECT_OK(context);
    context_ = *std::move(context);
    for (const auto& lu : device.catalogue().sparse_lus) {
      if (lu->name() == "multifrontal") lu_ = lu.get();
    }
    for (const auto& solver : device.solvers()) {
      if (solver->name() == "multifrontal") solver_ = solver.get();
    }
  }

  // Analyzes and factors `a` in the type `dtype`.
  absl::StatusOr<Factor> Make(const AnySparse& a, DType dtype,
                              const AnalysisOptions& options = {}) {
    Factor factor;
    factor.dtype = dtype;
    CROUT_ASSIGN_OR_RETURN(factor.analysis, Analyze(a, options, kNeverStop));
    CROUT_ASSIGN_OR_RETURN(factor.summary, Again(a, factor));
    return factor;
  }

  // Limits the workspace of later factorizations to `bytes`, or to their minimum if it is larger.
  void LimitWorkspace(size_t bytes) { max_workspace_ = bytes; }
  absl::StatusOr<size_t> WorkspaceBytes(const Factor& factor) const {
    return lu_->WorkspaceBytes(factor.analysis, factor.dtype, max_workspace_);
  }

  // Factors `a` into the block of `factor`, with its analysis. If `last`, another factor of the
  // same analysis, is given, reuses data of it.
  absl::StatusOr<NumericSummary> Again(const AnySparse& a, Factor& factor,
                                       StopRequested stop = kNeverStop,
                                       std::vector<int32_t>* postponable = nullptr,
                                       const Factor* last = nullptr) {
    const Analysis& analysis = factor.analysis;
    CROUT_ASSIGN_OR_RETURN(const size_t bytes, lu_->FactorBytes(analysis, factor.dtype));
    CROUT_ASSIGN_OR_RETURN(const size_t beside, WorkspaceBytes(factor));
    CROUT_ASSIGN_OR_RETURN(const size_t of_matrix, SparseBytes(a.n, a.nonzeros, a.dtype));
    CROUT_ASSIGN_OR_RETURN(const Buffer matrix, Put(a.data, of_matrix));
    CROUT_ASSIGN_OR_RETURN(const Buffer block, Poisoned(bytes));
    CROUT_ASSIGN_OR_RETURN(const Buffer workspace, Poisoned(beside));
    const AnySparse on_device = {matrix.data(), a.dtype, a.n, a.nonzeros};
    absl::StatusOr<NumericSummary> summary;
    if (last == nullptr) {
      summary = lu_->Factor(*context_, analysis, on_device, factor.dtype, {block.data(), bytes},
                            {workspace.data(), beside}, stop, postponable);
    } else {
      CROUT_ASSIGN_OR_RETURN(const Buffer there, Put(last->block.data(), last->block.size()));
      summary = lu_->FactorReusing(*context_, analysis, on_device, factor.dtype,
                                   {there.data(), there.size()}, {block.data(), bytes},
                                   {workspace.data(), beside}, stop, postponable);
    }
    CROUT_RETURN_IF_ERROR(summary.status());
    factor.block.resize(bytes);
    CROUT_RETURN_IF_ERROR(Get(block.data(), factor.block));
    return summary;
  }

  // Replaces the n x k matrix `b` by op(A)^-1 b.
  absl::Status Solve(const Factor& factor, Op op, const AnyMatrix& b) {
    CROUT_ASSIGN_OR_RETURN(const size_t beside,
                           solver_->SparseWorkspaceBytes(factor.analysis, factor.dtype, b.cols));
    CROUT_ASSIGN_OR_RETURN(const Buffer block, Put(factor.block.data(), factor.block.size()));
    CROUT_ASSIGN_OR_RETURN(const Buffer workspace, Poisoned(beside));
    std::vector<std::byte> host(b.rows == 0 ? 0 : b.ld * b.cols * SizeOf(b.dtype));
    std::copy_n(b.data, host.size(), host.data());
    CROUT_ASSIGN_OR_RETURN(const Buffer x, Put(host.data(), host.size()));
    FactorView view;
    view.lu = {block.data(), factor.dtype, factor.analysis.n, factor.analysis.n,
               std::max<int64_t>(1, factor.analysis.n)};
    view.analysis = &factor.analysis;
    CROUT_RETURN_IF_ERROR(solver_->Solve(*context_, view, op, 0,
                                         {x.data(), b.dtype, b.rows, b.cols, b.ld},
                                         {workspace.data(), beside}));
    CROUT_RETURN_IF_ERROR(Get(x.data(), host));
    std::copy(host.begin(), host.end(), b.data);
    return absl::OkStatus();
  }

  absl::StatusOr<LogDeterminant> Determinant(const Factor& factor) {
    CROUT_ASSIGN_OR_RETURN(const Buffer block, Put(factor.block.data(), factor.block.size()));
    return lu_->Determinant(*context_, factor.analysis, factor.summary,
                            {block.data(), factor.block.size()}, factor.dtype);
  }

  // Solves for k random right-hand sides with this number of refinement steps. Returns the largest
  // normwise backward error.
  double ErrorOf(const Factor& factor, const AnySparse& a, Op op, int64_t k, int refinements) {
    return ErrorAfter(a, factor.dtype, op, k, refinements,
                      [&](const AnyMatrix& b) { return Solve(factor, op, b); });
  }

 private:
  absl::StatusOr<Buffer> Put(const std::byte* data, size_t bytes) {
    CROUT_ASSIGN_OR_RETURN(Buffer buffer, device_.memory().Allocate(bytes));
    if (bytes == 0) return buffer;
    CROUT_RETURN_IF_ERROR(context_->ops().CopyToDevice(data, buffer.data(), bytes));
    CROUT_RETURN_IF_ERROR(context_->Synchronize());
    return buffer;
  }
  // Returns a device buffer filled with NaN.
  absl::StatusOr<Buffer> Poisoned(size_t bytes) {
    const std::vector<std::byte> poison(bytes, std::byte{0xff});
    return Put(poison.data(), bytes);
  }
  absl::Status Get(const std::byte* data, std::vector<std::byte>& to) {
    if (to.empty()) return absl::OkStatus();
    CROUT_RETURN_IF_ERROR(context_->ops().CopyToHost(data, to.data(), to.size()));
    return context_->Synchronize();
  }

  Device& device_;
  std::unique_ptr<ExecutionContext> context_;
  const SparseLu* lu_ = nullptr;
  const TriangularSolver* solver_ = nullptr;
  size_t max_workspace_ = std::numeric_limits<size_t>::max();
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_KERNELS_MULTIFRONTAL_MULTIFRONTAL_TESTING_H_
