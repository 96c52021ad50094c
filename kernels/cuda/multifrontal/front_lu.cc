// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/front_lu.h"

#include <algorithm>

#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/irr_lu/grid_lu.h"
#include "kernels/cuda/irr_lu/irr_blas.h"
#include "kernels/cuda/multifrontal/factor_block.h"
#include "kernels/cuda/ops/blas.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// A batch of at most kMaxFrontsOneByOne fronts with F11 of at least this order is factored faster
// one by one.
constexpr int32_t kSmallestAlone = 512;
constexpr int32_t kMaxFrontsOneByOne = 4;
// In a batch that leaves multiprocessors idle, each F11 above this order is factored by many
// blocks.
constexpr int32_t kSmallestOnGrid = 128;
constexpr int32_t kMaxFrontsOnGrid = 64;
// Products of at least this order use cuBLAS, front by front, if they have at least kLeaf terms.
constexpr int32_t kSmallestByBlas = 384;
// Order of the triangles whose solves are not split further into cuBLAS products.
constexpr int kLeaf = 128;

bool UsesGridKernel(const FrontBatch& batch) {
  return batch.d1 > LargestOf(MemberTeam::kBlock512) ||
         (batch.d1 > kSmallestOnGrid && batch.alike <= kMaxFrontsOnGrid);
}

bool IsFactoredOneByOne(const LuPanelKernels& kernels, const FrontBatch& batch, DType dtype) {
  return batch.d1 >= kSmallestAlone && batch.alike <= kMaxFrontsOneByOne &&
         batch.d1 <= kernels.MaxRows(dtype);
}

bool UsesBlas(const FrontBatch& batch) { return batch.d2 >= kSmallestByBlas && batch.d1 >= kLeaf; }

template <class T>
class FrontLu {
 public:
  FrontLu(Context& context, const LuPanelKernels& kernels, const FrontMemory<T>& memory,
          const TraversalStep& step, const FrontBatch& batch, const StopRequested& stop)
      : context_(context),
        kernels_(kernels),
        memory_(memory),
        step_(step),
        batch_(batch),
        stop_(stop) {}

  absl::Status Run(bool careful) {
    const bool alone = IsFactoredOneByOne(kernels_, batch_, kDTypeOf<T>) && !careful;
    CROUT_RETURN_IF_ERROR(alone ? FactorOneByOne() : FactorF11());
    if (batch_.d2 == 0) return absl::OkStatus();
    CROUT_RETURN_IF_CUDA_ERROR(ExchangeRows());
    if (!ByBlas()) {
      CROUT_RETURN_IF_ERROR(SolveLower(context_.queue(), 0, batch_.d1, batch_.d1));
      CROUT_RETURN_IF_ERROR(SolveUpper(context_.queue(), 0, batch_.d1, batch_.d1));
      return SubtractAll();
    }
    CROUT_RETURN_IF_ERROR(SolveBoth());
    return ForFronts(0, [this](const Front& front) { return Subtract(front); });
  }

 private:
  bool ByBlas() const { return UsesBlas(batch_); }

  absl::Status FactorF11() {
    const IrrLuBatch<T> lu = {memory_.factor, memory_.members.f11, memory_.ipiv, memory_.info,
                              memory_.least};
    if (!UsesGridKernel(batch_)) {
      CROUT_RETURN_IF_CUDA_ERROR(LaunchMemberLu(lu, TeamOf(batch_.d1, batch_.d1), Order(),
                                                batch_.count(), false, context_.stream()));
      return absl::OkStatus();
    }
    IrrOrder parts;
    parts.grid = {batch_.d1, batch_.d1, batch_.d1};
    for (int32_t i = batch_.begin; i < batch_.end; ++i) parts.grid_sizes.push_back(FrontAt(i).d1);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchGridLu(lu, parts, Order(), context_.stream()));
    return absl::OkStatus();
  }

  absl::Status FactorOneByOne() {
    return ForFronts(0, [this](const Front& front) {
      const MatrixView<T> panel = front.Panel(memory_.factor);
      return EnqueueCroutLu(LuStreams::WithoutProgress(context_), kernels_,
                            LuBlocking::For(kDTypeOf<T>, front.d1),
                            Block(panel, 0, 0, front.d1, front.d1), memory_.ipiv + front.first,
                            memory_.workspace, stop_);
    });
  }

  absl::Status SubtractAll() {
    IrrGemm<T> gemm;
    gemm.m = gemm.n = batch_.d2;
    gemm.k = batch_.d1;
    gemm.alpha = T{-1};
    gemm.a = Constant(F21());
    gemm.b = Constant(F12());
    gemm.beta = T{1};
    gemm.c = {memory_.contributions, memory_.members.f22};
    CROUT_RETURN_IF_CUDA_ERROR(LaunchIrrGemm(gemm, Reaching(0), context_.stream()));
    return absl::OkStatus();
  }

  // Both solves run concurrently, because each is a chain of steps that leaves multiprocessors
  // idle.
  absl::Status SolveBoth() {
    LookAhead& ahead = context_.look_ahead();
    CROUT_RETURN_IF_ERROR(ahead.Fork());
    absl::Status status = SolveUpperOn(ahead.urgent());
    if (status.ok()) status = SolveLower(context_.queue(), 0, batch_.d1, kLeaf);
    // Join after an error too, so that a wait for the context covers both queues.
    const absl::Status joined = ahead.Join();
    return status.ok() ? joined : status;
  }
  absl::Status SolveUpperOn(const Queue& queue) {
    // Set again, because crout_lu sets the handle's workspace to its own.
    CROUT_RETURN_IF_CUBLAS_ERROR(
        cublasSetWorkspace(queue.cublas, memory_.cublas.data(), memory_.cublas.size()));
    return SolveUpper(queue, 0, batch_.d1, kLeaf);
  }

  // U12 := L11^-1 U12 in rows [begin, end), from which the product with the rows above is already
  // subtracted. More than `most` rows are halved, with a cuBLAS product between the halves.
  absl::Status SolveLower(const Queue& queue, int begin, int end, int most) {
    if (end - begin <= most) {
      IrrTrsm<T> leaf;
      leaf.m = end - begin;
      leaf.n = batch_.d2;
      leaf.t = F11().At(begin, begin);
      leaf.b = F12().At(begin, 0);
      CROUT_RETURN_IF_CUDA_ERROR(LaunchIrrTrsm(leaf, Reaching(begin), queue.stream));
      return absl::OkStatus();
    }
    const int middle = begin + CutOf(end - begin, kLeaf);
    CROUT_RETURN_IF_ERROR(SolveLower(queue, begin, middle, most));
    CROUT_RETURN_IF_ERROR(ForFronts(middle, [&](const Front& front) {
      const MatrixView<T> u12 = front.U12(memory_.factor);
      const int64_t below = std::min<int64_t>(end, front.d1) - middle;
      return Multiply(
          queue, Block(front.Panel(memory_.factor), middle, begin, below, middle - begin),
          Block(u12, begin, 0, middle - begin, u12.cols), Block(u12, middle, 0, below, u12.cols));
    }));
    return SolveLower(queue, middle, end, most);
  }

  // L21 := L21 U11^-1 in columns [begin, end), by the same recursion.
  absl::Status SolveUpper(const Queue& queue, int begin, int end, int most) {
    if (end - begin <= most) {
      IrrTrsmFromRight<T> leaf;
      leaf.m = batch_.d2;
      leaf.n = end - begin;
      leaf.u = F11().At(begin, begin);
      leaf.b = F21().At(0, begin);
      CROUT_RETURN_IF_CUDA_ERROR(LaunchIrrTrsmFromRight(leaf, Reaching(begin), queue.stream));
      return absl::OkStatus();
    }
    const int middle = begin + CutOf(end - begin, kLeaf);
    CROUT_RETURN_IF_ERROR(SolveUpper(queue, begin, middle, most));
    CROUT_RETURN_IF_ERROR(ForFronts(middle, [&](const Front& front) {
      const MatrixView<T> panel = front.Panel(memory_.factor);
      const int64_t right = std::min<int64_t>(end, front.d1) - middle;
      return Multiply(queue, Block(panel, front.d1, begin, front.d2, middle - begin),
                      Block(panel, begin, middle, middle - begin, right),
                      Block(panel, front.d1, middle, front.d2, right));
    }));
    return SolveUpper(queue, middle, end, most);
  }

  // F22 := F22 - L21 U12.
  absl::Status Subtract(const Front& front) {
    return Multiply(context_.queue(),
                    Block(front.Panel(memory_.factor), front.d1, 0, front.d2, front.d1),
                    front.U12(memory_.factor), front.Contribution(memory_.contributions));
  }

  // c := c - a b.
  absl::Status Multiply(const Queue& queue, const MatrixView<T>& a, const MatrixView<T>& b,
                        const MatrixView<T>& c) {
    const T minus_one{-1};
    const T one{1};
    return CublasStatus(Gemm<T>(queue.cublas, Op::kNone, &minus_one, {a.data, a.rows, a.cols, a.ld},
                                {b.data, b.rows, b.cols, b.ld}, &one, c),
                        "cublasXgemm");
  }

  cudaError_t ExchangeRows() {
    IrrLaswp<T> laswp;
    laswp.end = batch_.d1;
    laswp.n = batch_.d2;
    laswp.ipiv = memory_.ipiv;
    laswp.pivots = memory_.members.f11;
    laswp.a = F12();
    return LaunchIrrLaswp(laswp, Reaching(0), context_.stream());
  }

  // The number of fronts with more than `columns` columns. They come first in the batch, which is
  // sorted if d1 exceeds 32; `columns` is 0 for other batches.
  int32_t CountReaching(int columns) const {
    if (columns == 0) return batch_.count();
    int32_t count = 0;
    while (count < batch_.count() && FrontAt(batch_.begin + count).d1 > columns) ++count;
    return count;
  }
  IrrMembers Reaching(int columns) const { return {Order(), CountReaching(columns)}; }
  template <class F>
  absl::Status ForFronts(int columns, F f) {
    const int32_t end = batch_.begin + CountReaching(columns);
    for (int32_t i = batch_.begin; i < end; ++i) CROUT_RETURN_IF_ERROR(f(FrontAt(i)));
    return absl::OkStatus();
  }

  static MatrixView<T> Block(const MatrixView<T>& a, int64_t row, int64_t col, int64_t rows,
                             int64_t cols) {
    return {&a(row, col), rows, cols, a.ld};
  }
  // The front at index i of the order.
  Front FrontAt(int32_t i) const {
    return MakeFront(*memory_.analysis, memory_.fronts[i], step_.shift);
  }
  const int32_t* Order() const { return memory_.order + batch_.begin; }

  static IrrMatrix<const T> Constant(const IrrMatrix<T>& a) {
    return {a.data, a.members, a.row, a.col};
  }
  IrrMatrix<const T> F11() const { return {memory_.factor, memory_.members.f11}; }
  IrrMatrix<T> F12() const { return {memory_.factor, memory_.members.f12}; }
  IrrMatrix<T> F21() const { return {memory_.factor, memory_.members.f21}; }

  Context& context_;
  const LuPanelKernels& kernels_;
  const FrontMemory<T>& memory_;
  const TraversalStep& step_;
  const FrontBatch& batch_;
  const StopRequested& stop_;
};

}  // namespace

size_t FrontLuWorkspaceBytes(const LuPanelKernels& kernels, const Analysis& analysis,
                             const LevelPlan& plan, DType dtype) {
  size_t bytes = 0;
  for (const FrontBatch& batch : plan.batches.all()) {
    if (!IsFactoredOneByOne(kernels, batch, dtype)) continue;
    if (batch.level == 0 && analysis.kept > 0) continue;  // assembled but not factored
    bytes = std::max(bytes, MaxCroutLuWorkspaceBytes(kernels, dtype, batch.d1, batch.d1));
  }
  return bytes;
}

size_t FrontLuCublasBytes(const LevelPlan& plan) {
  const std::vector<FrontBatch>& batches = plan.batches.all();
  return std::any_of(batches.begin(), batches.end(), UsesBlas) ? Context::kCublasWorkspaceBytes : 0;
}

template <class T>
absl::Status EnqueueFrontLu(Context& context, const LuPanelKernels& kernels,
                            const FrontMemory<T>& memory, const TraversalStep& step,
                            const FrontBatch& batch, bool careful, const StopRequested& stop) {
  return FrontLu<T>(context, kernels, memory, step, batch, stop).Run(careful);
}

#define CROUT_INSTANTIATE(T)                                                                   \
  template absl::Status EnqueueFrontLu(Context&, const LuPanelKernels&, const FrontMemory<T>&, \
                                       const TraversalStep&, const FrontBatch&, bool,          \
                                       const StopRequested&);
CROUT_INSTANTIATE(float)
CROUT_INSTANTIATE(double)
CROUT_INSTANTIATE(Complex<float>)
CROUT_INSTANTIATE(Complex<double>)
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
