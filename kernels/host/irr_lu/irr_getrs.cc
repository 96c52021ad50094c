// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/irr_lu/irr_lu.h"

#include <algorithm>
#include <atomic>
#include <cassert>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/host/irr_lu/member_queue.h"
#include "kernels/host/ops/lapack.h"
#include "kernels/host/solve/substitution.h"
#include "kernels/util/strings.h"

namespace crout::host {
namespace {

// Workspace: the order of the members, then LAPACK's pivots for each thread.
struct WorkspaceLayout {
  explicit WorkspaceLayout(const BatchExtent& lu)
      : order_bytes(AlignToCacheLine(MemberQueue::OrderBytes(lu.members))),
        thread_bytes(AlignToCacheLine(sizeof(lapack_int) * lu.max_diagonal)) {}

  size_t order_bytes;
  size_t thread_bytes;
};

absl::Status CheckFits(const IrregularBatch& lu, const IrregularBatch& b) {
  if (lu.extent.dtype != b.extent.dtype) {
    return absl::InvalidArgumentError(
        absl::StrCat("the right-hand sides have type ", ToAbsl(NameOf(b.extent.dtype)),
                     "; the factors have type ", ToAbsl(NameOf(lu.extent.dtype))));
  }
  if (lu.extent.members != b.extent.members) {
    return absl::InvalidArgumentError(absl::StrCat("there are right-hand sides for ",
                                                   b.extent.members, " members; the factor has ",
                                                   lu.extent.members, " members"));
  }
  for (int64_t i = 0; i < b.extent.members; ++i) {
    const BatchMember& a = lu.members[i];
    const BatchMember& x = b.members[i];
    if (x.cols == 0) continue;
    if (a.rows != a.cols) {
      return absl::InvalidArgumentError(absl::StrCat("member ", i, " is ", a.rows, " x ", a.cols,
                                                     "; only square members can be solved with"));
    }
    if (a.rows != x.rows) {
      return absl::InvalidArgumentError(absl::StrCat(
          "member ", i, " has order ", a.rows, "; its right-hand sides have ", x.rows, " rows"));
    }
  }
  return absl::OkStatus();
}

// Size that determines the number of cores: elements of the larger of A and B; 0 if B has no
// columns.
int64_t ElementsOf(const BatchMember& b) {
  return b.cols == 0 ? 0 : int64_t{b.rows} * std::max(b.rows, b.cols);
}

Width WidthOf(const IrregularBatch& b) {
  int64_t elements = 0;
  for (int64_t i = 0; i < b.extent.members; ++i) elements += ElementsOf(b.members[i]);
  return WidthFor(elements);
}

template <class T>
class BatchGetrs {
 public:
  BatchGetrs(Op op, const IrregularBatch& lu, const BatchFactors& factors, const IrregularBatch& b,
             std::span<std::byte> workspace)
      : op_(op), lu_(lu), factors_(factors), b_(b), layout_(lu.extent), workspace_(workspace) {}

  absl::Status Run(int cores, StopRequested stop) {
    const auto work = [this](int64_t i) {
      const BatchMember& b = b_.members[i];
      if (WidthFor(ElementsOf(b)) == Width::kAllCores) return MemberQueue::kAllCores;
      return int64_t{b.rows} * b.rows * b.cols;
    };
    MemberQueue queue(
        {reinterpret_cast<int32_t*>(workspace_.data()), static_cast<size_t>(b_.extent.members)},
        work);
    CROUT_RETURN_IF_ERROR(
        ForMembers(cores, queue, stop, [this](int64_t thread, int64_t i) { Solve(thread, i); }));
    return refused_ ? absl::InternalError("LAPACK getrs rejected an argument") : absl::OkStatus();
  }

 private:
  void Solve(int64_t thread, int64_t i) {
    const MatrixView<T> b = b_.Member<T>(i);
    if (b.rows == 0 || b.cols == 0) return;
    if (factors_.info[i] > 0) {
      for (int64_t j = 0; j < b.cols; ++j) {
        std::fill_n(&b(0, j), b.rows, T{std::numeric_limits<RealPart<T>>::quiet_NaN()});
      }
      return;
    }
    const MatrixView<T> lu = lu_.Member<T>(i);
    const int64_t* const ipiv = factors_.ipiv + lu_.members[i].first_diagonal;
    if (!HasReciprocals(lu)) {
      const AnyMatrix any{reinterpret_cast<std::byte*>(lu.data), kDTypeOf<T>, lu.rows, lu.cols,
                          lu.ld};
      Substitute(FactorView{any, ipiv, UnitDiagonal::kL}, op_, b);
      return;
    }
    auto* const pivots = reinterpret_cast<lapack_int*>(workspace_.data() + layout_.order_bytes +
                                                       thread * layout_.thread_bytes);
    std::transform(ipiv, ipiv + lu.rows, pivots,
                   [](int64_t p) { return static_cast<lapack_int>(p); });
    if (Getrs(op_, lu, pivots, b) != 0) refused_ = true;
  }

  const Op op_;
  const IrregularBatch& lu_;
  const BatchFactors& factors_;
  const IrregularBatch& b_;
  const WorkspaceLayout layout_;
  const std::span<std::byte> workspace_;
  std::atomic<bool> refused_ = false;  // by LAPACK: an internal error
};

}  // namespace

size_t IrrGetrsWorkspaceBytes(const Executor& executor, const BatchExtent& lu) {
  const WorkspaceLayout layout(lu);
  return layout.order_bytes + executor.budget().total() * layout.thread_bytes;
}

absl::Status IrrGetrs(Executor& executor, Op op, const IrregularBatch& lu,
                      const BatchFactors& factors, const IrregularBatch& b,
                      std::span<std::byte> workspace, StopRequested stop) {
  assert(workspace.size() >= IrrGetrsWorkspaceBytes(executor, lu.extent));
  CROUT_RETURN_IF_ERROR(CheckFits(lu, b));
  absl::Status status;
  executor.Run(WidthOf(b), [&](int cores) {
    DispatchDType(lu.extent.dtype, [&](auto tag) {
      BatchGetrs<typename decltype(tag)::type> batch(op, lu, factors, b, workspace);
      status = batch.Run(cores, stop);
    });
  });
  return status;
}

}  // namespace crout::host
