// SPDX-License-Identifier: Apache-2.0

// Chooses whether the matrix of a job is factored as a sparse matrix, and by which method.
#ifndef CROUT_SERVER_ENGINE_PLAN_SPARSE_CHOICE_H_
#define CROUT_SERVER_ENGINE_PLAN_SPARSE_CHOICE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "server/engine/admission/job_memory.h"
#include "server/engine/engine.h"
#include "server/engine/upload/matrix_upload.h"

namespace crout {

// The part of a factorization request that the choice depends on.
struct SparseChoiceInput {
  const FactorRequest* request = nullptr;
  // Options, with the dense method selected for the order of the matrix.
  const FactorizeOptions* dense = nullptr;
  // Dense factorization that would run first, if not `dense`; may be null.
  const FactorizeOptions* first = nullptr;
  // The request needs no feature that only dense methods have.
  bool allows_sparse = true;

  // Predicted seconds of the dense factorization of a matrix of order n.
  double DenseSeconds(int64_t n) const {
    const FactorizeOptions& options = first != nullptr ? *first : *dense;
    return options.algorithm->PredictSeconds(options.factor_dtype, n);
  }
};

// The choice for one job on one device.
class SparseChoice {
 public:
  SparseChoice(Engine& engine, DeviceSlot& slot) : engine_(engine), slot_(slot) {}

  // If the request's algorithm is a sparse method, stores its name and resets the field. The matrix
  // is then factored by this method. INVALID_ARGUMENT if the matrix cannot be sparse or an option
  // does not apply to the algorithm.
  absl::Status ExtractMethodName(bool may_be_sparse, FactorRequest* request);
  // Returns UNIMPLEMENTED if the named method does not support the requested type.
  absl::Status CheckType(const SparseChoiceInput& input) const;
  bool named() const { return !name_.empty(); }
  const std::string& name() const { return name_; }

  // Allows factoring the matrix as sparse, unless `solver`, the requested solver, accepts only
  // dense factors. If it is the solver of a sparse method, `auto` means this method. The calls of
  // `tenant` share analyses.
  void Allow(std::string tenant, std::string_view solver = "auto");
  bool allowed() const { return allowed_; }

  // Analyzes a parsed matrix if sparse factoring is allowed and may be faster. Plans a sparse
  // factorization if it is predicted to be faster than the dense one, or if the request, the solver
  // or the order requires one. Call on a thread that may block.
  absl::Status Analyze(MatrixUpload& upload, const SparseChoiceInput& input, StopRequested stop);
  // Analyzes a matrix and plans a factorization that keeps the unknowns `keep` for a Schur
  // complement. UNIMPLEMENTED if no method computes Schur complements. The analysis is not shared
  // with later calls. Call on a thread that may block.
  absl::Status AnalyzeForSchur(MatrixUpload& upload, std::vector<int32_t> keep,
                               const SparseChoiceInput& input, StopRequested stop);
  // Plans the factorization of a matrix with the analyzed pattern `known`, by the method that is
  // predicted to be the fastest. If this is the method of `known`, the call is fast enough for a
  // thread of the transport.
  absl::Status PlanForPattern(const SparseSummary& known, DType matrix_dtype,
                              const SparseChoiceInput& input);

  // Rough estimate of a matrix with an unknown pattern. `method` is the sparse method that would be
  // tried first; null if the matrix would not be analyzed.
  struct Guess {
    const SparseLu* method = nullptr;
    JobBytes bytes;
    double seconds = 0;
  };
  Guess GuessFor(int64_t n, int64_t nonzeros, DType matrix_dtype,
                 const SparseChoiceInput& input) const;

  // Null if the matrix is not factored as sparse.
  const SparseFactorizePlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // Worker thread: runs the planned factorization of `matrix`, with parts of the factor `last`
  // unless it is null. `memory` is the job's reservation; a factorization that postpones pivots
  // enlarges it for `tenant`. Afterwards plan() has the analysis and the method that were used.
  absl::StatusOr<Factorization> Factor(ExecutionContext& context, const Factorization* last,
                                       Buffer matrix, JobMemory& memory, std::string_view tenant,
                                       StopRequested stop, KernelTimings& timings);
  // Returns true if Factor() used another analysis or method than planned.
  bool changed() const { return changed_; }
  // Predicts the summary of the factor. Assumes a perturbed pivot, because the solves of such a
  // factor need the most memory.
  FactorSummary Expected() const;

  // 0-based index of a row that the maximum matching leaves unmatched; -1 if all rows are matched.
  int64_t unmatched_row() const { return analysis_ == nullptr ? -1 : analysis_->unmatched_row; }
  // True if a row or column has no nonzero entry. The matrix is then not analyzed.
  bool has_empty_line() const { return has_empty_line_; }
  const std::shared_ptr<const Analysis>& analysis() const { return analysis_; }
  double seconds() const { return seconds_; }  // duration of the analysis

 private:
  // Returns the sparse methods that the request permits.
  std::vector<const SparseLu*> Methods(const SparseChoiceInput& input) const;
  // Returns true if the matrix should be analyzed for one of `methods`.
  bool ShouldAnalyze(int64_t n, int64_t nonzeros, const SparseChoiceInput& input,
                     const std::vector<const SparseLu*>& methods) const;
  // Updates the plan with the analysis and the method that the job used.
  void Update(const FactorSummary& made);
  absl::StatusOr<SparseMethod> WithSolver(const SparseLu& method, DType dtype) const;
  // Plans the factorization by the fastest of `methods`. Unless `must`, plans nothing if the dense
  // factorization is predicted to be at least as fast.
  absl::Status Choose(const std::vector<const SparseLu*>& methods, DType matrix_dtype, bool reused,
                      bool must, const SparseChoiceInput& input, const CachedWorkspace& known = {});

  Engine& engine_;
  DeviceSlot& slot_;
  std::string name_;
  bool allowed_ = false;
  std::string tenant_;
  std::string solver_method_;  // the sparse method whose solver is named
  // If the matrix is structurally singular, only the analysis is set and plan_ is empty.
  std::shared_ptr<const Analysis> analysis_;
  std::optional<SparseFactorizePlan> plan_;
  double seconds_ = 0;
  bool has_empty_line_ = false;
  bool changed_ = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_PLAN_SPARSE_CHOICE_H_
