// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/irr_lu/irr_lu.h"

#include <algorithm>
#include <atomic>
#include <cassert>

#include "kernels/dtype.h"
#include "kernels/host/irr_lu/member_probe.h"
#include "kernels/host/irr_lu/member_queue.h"
#include "kernels/host/irr_lu/small_lu.h"
#include "kernels/host/ops/lapack.h"
#include "kernels/numerics/normalizing_scale.h"
#include "kernels/numerics/pivot_growth.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

Width WidthOf(const BatchExtent& extent) {
  return WidthFor(static_cast<int64_t>(extent.bytes / SizeOf(extent.dtype)));
}

// Workspace: the order of the members, then for each thread its probe's memory and LAPACK's pivots.
struct WorkspaceLayout {
  explicit WorkspaceLayout(const BatchExtent& extent)
      : order_bytes(AlignToCacheLine(MemberQueue::OrderBytes(extent.members))),
        probe_bytes(AlignToCacheLine(
            DispatchDType(extent.dtype,
                          [&](auto tag) {
                            return MemberProbe<typename decltype(tag)::type>::WorkBytes(extent);
                          }))),
        thread_bytes(probe_bytes + AlignToCacheLine(sizeof(lapack_int) * extent.max_diagonal)) {}

  size_t order_bytes;
  size_t probe_bytes;
  size_t thread_bytes;  // probe_bytes included
};

// Operations for a member, up to a constant factor. The probe adds kProbeOpsPerElement per element.
int64_t WorkOf(const BatchMember& member) {
  const int64_t elements = int64_t{member.rows} * member.cols;
  if (WidthFor(elements) == Width::kAllCores) return MemberQueue::kAllCores;
  constexpr int64_t kProbeOpsPerElement = 8;
  return elements * (member.diagonal() + kProbeOpsPerElement);
}

// Power of two that scales a matrix with entries up to max_abs into the safe range, in which only
// numerically singular matrices have subnormal pivots. Returns 1 if it is already there.
template <class T>
double ScaleInto(double max_abs) {
  return SafeRangeOf(kDTypeOf<T>).contains(max_abs) ? 1 : NormalizingScale(max_abs);
}

// Multiplies `a` by a power of two: all entries, or with `upper` those on and above the diagonal.
template <class T>
void Multiply(const MatrixView<T>& a, double scale, bool upper) {
  for (int64_t j = 0; j < a.cols; ++j) {
    const int64_t rows = upper ? std::min(a.rows, j + 1) : a.rows;
    for (int64_t i = 0; i < rows; ++i) a(i, j) = ConvertTo<T>(ToFloat64(a(i, j)) * scale);
  }
}

template <class T>
class BatchGetrf {
 public:
  BatchGetrf(const IrregularBatch& a, const BatchFactors& factors, std::span<std::byte> workspace)
      : a_(a), factors_(factors), layout_(a.extent), workspace_(workspace) {}

  absl::Status Run(int cores, StopRequested stop) {
    const auto work = [this](int64_t i) { return WorkOf(a_.members[i]); };
    MemberQueue queue(
        {reinterpret_cast<int32_t*>(workspace_.data()), static_cast<size_t>(a_.extent.members)},
        work);
    CROUT_RETURN_IF_ERROR(
        ForMembers(cores, queue, stop, [this](int64_t thread, int64_t i) { Factor(thread, i); }));
    return refused_ ? absl::InternalError("LAPACK getrf rejected an argument") : absl::OkStatus();
  }

 private:
  void Factor(int64_t thread, int64_t i) {
    const MatrixView<T> a = a_.Member<T>(i);
    if (a.rows == 0 || a.cols == 0) {
      factors_.info[i] = 0;
      factors_.pivot_growth[i] = 1;
      factors_.quality[i] = 0;
      if (factors_.pivot_condition != nullptr) factors_.pivot_condition[i] = 1;
      return;
    }
    int64_t* const ipiv = factors_.ipiv + a_.members[i].first_diagonal;
    std::byte* const memory =
        workspace_.data() + layout_.order_bytes + thread * layout_.thread_bytes;
    MemberProbe<T> probe(a_.extent, memory);
    probe.Start(a);
    const double scale = ScaleInto<T>(probe.max_abs());
    if (scale != 1) Multiply(a, scale, /*upper=*/false);
    const int64_t info =
        IsSmall(a)
            ? FactorSmall(a, ipiv)
            : CallLapack(a, reinterpret_cast<lapack_int*>(memory + layout_.probe_bytes), ipiv);
    if (scale != 1) Multiply(a, 1 / scale, /*upper=*/true);
    factors_.info[i] = static_cast<int32_t>(info);
    const typename MemberProbe<T>::Figures figures = probe.Finish(a, ipiv);
    factors_.pivot_growth[i] = figures.pivot_growth;
    factors_.quality[i] = figures.quality;
    if (factors_.pivot_condition != nullptr) {
      factors_.pivot_condition[i] = static_cast<float>(figures.pivot_condition);
    }
    if (info > 0 && GrowthHidesSingularity(figures.pivot_growth, kDTypeOf<T>)) {
      ReplaceZeroPivots(a, figures.pivot_growth * probe.max_abs());
      factors_.info[i] = 0;
    }
  }

  static void ReplaceZeroPivots(const MatrixView<T>& a, double max_abs_u) {
    const T pivot = ConvertTo<T>(WideType<T>(ZeroPivotReplacement(max_abs_u, kDTypeOf<T>)));
    for (int64_t k = 0; k < std::min(a.rows, a.cols); ++k) {
      if (a(k, k) == T{0}) a(k, k) = pivot;
    }
  }

  int64_t CallLapack(const MatrixView<T>& a, lapack_int* pivots, int64_t* ipiv) {
    const int64_t diagonal = std::min(a.rows, a.cols);
    std::fill_n(pivots, diagonal, 1);
    const lapack_int info = Getrf(a, pivots);
    if (info < 0) refused_ = true;
    std::copy_n(pivots, diagonal, ipiv);
    return info;
  }

  const IrregularBatch& a_;
  const BatchFactors& factors_;
  const WorkspaceLayout layout_;
  const std::span<std::byte> workspace_;
  std::atomic<bool> refused_ = false;  // by LAPACK: an internal error
};

}  // namespace

size_t IrrGetrfWorkspaceBytes(const Executor& executor, const BatchExtent& extent) {
  const WorkspaceLayout layout(extent);
  const size_t threads = WidthOf(extent) == Width::kAllCores ? executor.budget().total() : 1;
  return layout.order_bytes + threads * layout.thread_bytes;
}

absl::Status IrrGetrf(Executor& executor, const IrregularBatch& a, const BatchFactors& factors,
                      std::span<std::byte> workspace, StopRequested stop) {
  assert(workspace.size() >= IrrGetrfWorkspaceBytes(executor, a.extent));
  absl::Status status;
  executor.Run(WidthOf(a.extent), [&](int cores) {
    DispatchDType(a.extent.dtype, [&](auto tag) {
      BatchGetrf<typename decltype(tag)::type> batch(a, factors, workspace);
      status = batch.Run(cores, stop);
    });
  });
  return status;
}

}  // namespace crout::host
