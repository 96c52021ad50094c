// SPDX-License-Identifier: Apache-2.0

// Whether the matrix of a call stays sparse, and by which method it is factored then.
#ifndef CROUT_SERVER_RPC_SPARSE_CHOICE_H_
#define CROUT_SERVER_RPC_SPARSE_CHOICE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/jobs/factorize.h"
#include "kernels/jobs/sparse_factorize.h"
#include "server/rpc/core.h"
#include "server/rpc/matrix_upload.h"

namespace crout {

// What a call asks of its factorization, as far as the choice goes by it.
struct FactorWish {
  const v1::FactorizeOptions* request = nullptr;
  // As decoded, with the dense method of the matrix's order.
  const FactorizeOptions* dense = nullptr;
  // The dense factorization in lower precision that `auto` would take in its place; may be null.
  const FactorizeOptions* low = nullptr;
  // Nothing that only dense methods have.
  bool sparse_will_do = true;

  // Predicted seconds of the dense factorization of a matrix of order n.
  double DenseSeconds(int64_t n) const {
    const FactorizeOptions& options = low != nullptr ? *low : *dense;
    return options.algorithm->PredictSeconds(options.factor_dtype, n);
  }
};

// Of one call on one device.
class SparseChoice {
 public:
  SparseChoice(ServerCore& core, DeviceSlot& slot) : core_(core), slot_(slot) {}

  // Takes the algorithm out of the request where that is a sparse method's name, which is what the
  // choice goes by then. INVALID_ARGUMENT for a matrix that is known not to be sparse, and for
  // options that such methods do not take.
  absl::Status TakeName(bool may_be_sparse, v1::FactorizeOptions* request);
  // UNIMPLEMENTED where that method has not the type that is asked for.
  absl::Status CheckType(const FactorWish& wish) const;
  bool named() const { return !name_.empty(); }
  const std::string& name() const { return name_; }

  // The matrix may stay sparse. Patterns are shared among `tenant`'s calls. `solver`: that it will
  // be solved with; one for dense factors alone keeps the matrix from staying sparse, and one of a
  // sparse method leaves no other to `auto`.
  void Allow(std::string tenant, std::string_view solver = "auto");
  bool allowed() const { return allowed_; }

  // Of a matrix that was parsed: analyses it where that is worth its time, and plans the
  // factorization where a sparse method is named or expected to be the fastest. On a thread that
  // may block.
  absl::Status Analyze(MatrixUpload& upload, const FactorWish& wish, StopRequested stop);
  // Analyses and plans one of whose unknowns these are kept for a Schur complement. UNIMPLEMENTED
  // where no method leaves such. No later call finds the analysis.
  absl::Status AnalyzeKeeping(MatrixUpload& upload, std::vector<int32_t> keep,
                              const FactorWish& wish, StopRequested stop);
  // Plans that of a matrix of the pattern of one that was factored, or is to be, by the method that
  // is expected to be the fastest. By that one's method it takes no time: for reactions.
  absl::Status PlanKnown(const SparseSummary& known, DType matrix_dtype, const FactorWish& wish);

  // Before anything is known of the pattern: the method that would be tried, null for none, and
  // what it would come to, very roughly.
  struct Guess {
    const SparseLu* method = nullptr;
    JobBytes bytes;
    double seconds = 0;
  };
  Guess GuessFor(int64_t n, int64_t nonzeros, DType matrix_dtype, const FactorWish& wish) const;

  // Null where the matrix is not to stay sparse. A job changes it into what it came to.
  const SparseFactorizePlan* plan() const { return plan_ ? &*plan_ : nullptr; }
  // After the job: whether the analysis or the method is another than was planned for.
  bool Take(const FactorSummary& made);
  // What will be known of the factor before it exists, with the most that a solve could need.
  FactorSummary Expected() const;

  // The row that no matching has an entry for, from 0; -1: none.
  int64_t unmatched_row() const { return analysis_ == nullptr ? -1 : analysis_->unmatched_row; }
  // Whether a row or a column had no entry but zeros: then nothing was analysed.
  bool has_empty_line() const { return has_empty_line_; }
  const std::shared_ptr<const Analysis>& analysis() const { return analysis_; }
  double seconds() const { return seconds_; }  // that the analysis took

 private:
  // Those that the request leaves to choose from.
  std::vector<const SparseLu*> Methods(const FactorWish& wish) const;
  // Whether one of them is to be tried.
  bool IsWorthAnalysing(int64_t n, int64_t nonzeros, const FactorWish& wish,
                        const std::vector<const SparseLu*>& methods) const;
  absl::StatusOr<SparseMethod> WithSolver(const SparseLu& method, DType dtype) const;
  // By the best of these; unless one of them is to be taken, only where it is better than the dense
  // one.
  absl::Status Choose(const std::vector<const SparseLu*>& methods, DType matrix_dtype, bool reused,
                      bool must, const FactorWish& wish, const CachedWorkspace& known = {});

  ServerCore& core_;
  DeviceSlot& slot_;
  std::string name_;
  bool allowed_ = false;
  std::string tenant_;
  std::string solved_by_;  // the sparse method whose solver is named
  // Of a matrix whose structure is singular there is nothing but this.
  std::shared_ptr<const Analysis> analysis_;
  std::optional<SparseFactorizePlan> plan_;
  double seconds_ = 0;
  bool has_empty_line_ = false;
};

}  // namespace crout

#endif  // CROUT_SERVER_RPC_SPARSE_CHOICE_H_
