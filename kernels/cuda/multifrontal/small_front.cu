#include "kernels/cuda/multifrontal/small_front.h"

#include "kernels/cuda/device/shared_memory.cuh"
#include "kernels/cuda/irr_lu/divide_by.cuh"
#include "kernels/cuda/irr_lu/pivot_candidate.cuh"
#include "kernels/cuda/irr_lu/raise_pivot.cuh"

namespace crout::cuda {
namespace {

constexpr int kThreads = 128;
static_assert(kSmallFront <= kThreads && kSmallFrontColumns <= kWarp);

// By a team of threads, a warp or a block: a warp of it for a column wherever columns are gone
// through.
template <class T, int kSize, int kTeam>
class SmallFrontLu {
 public:
  using Columns = T[kSize][kSize + 1];  // [column][row]

  __device__ SmallFrontLu(const Front& front, Columns& f)
      : front_(front),
        size_(static_cast<int>(front.size())),
        f_(f),
        thread_(static_cast<int>(threadIdx.x) % kTeam),
        warp_(thread_ / kWarp),
        lane_(thread_ % kWarp) {}

  __device__ void Assemble(const FrontTree& tree, const T* factor, const T* contributions) const {
    const auto panel = front_.Panel<const T>(factor);
    const auto u12 = front_.U12<const T>(factor);
    for (int j = warp_; j < size_; j += kWarps) {
      for (int i = lane_; i < size_; i += kWarp) {
        f_[j][i] = j < front_.d1 ? panel(i, j) : i < front_.d1 ? u12(i, j - front_.d1) : T{0};
      }
    }
    Meet();
    for (int32_t c = front_.child_begin; c < front_.child_end; ++c) {
      const Front child = tree.fronts[tree.child[c]];
      const int32_t* const place = tree.place + child.border;
      const auto from = child.Contribution<const T>(contributions);
      for (int j = warp_; j < child.d2; j += kWarps) {
        T* const column = f_[place[j]];
        for (int i = lane_; i < child.d2; i += kWarp) column[place[i]] += from(i, j);
      }
      Meet();
    }
  }

  __device__ void Factor(int64_t* ipiv, const LeastPivots<T>& least) const {
    for (int k = 0; k < front_.d1; ++k) {
      // Every warp finds the pivot, the same.
      PivotCandidate own;
      if (lane_ >= k && lane_ < front_.d1) own = {KeyOf(f_[k][lane_]), lane_};
      const int p = __ffs(static_cast<int>(BestLane(own))) - 1;
      const T pivot = RaisePivot(f_[k][p], least, k, thread_ == 0);
      if (thread_ == 0) ipiv[k] = p + 1;
      Meet();
      for (int j = thread_; j < size_; j += kTeam) {
        const T row = f_[j][k];
        f_[j][k] = j == k ? pivot : f_[j][p];
        if (p != k) f_[j][p] = row;
      }
      Meet();
      const DivideBy<T> divide(pivot);
      for (int i = k + 1 + thread_; i < size_; i += kTeam) f_[k][i] = divide(f_[k][i]);
      Meet();
      for (int j = k + 1 + warp_; j < size_; j += kWarps) {
        const T u = f_[j][k];
        for (int i = k + 1 + lane_; i < size_; i += kWarp) {
          f_[j][i] = MinusProduct(f_[j][i], f_[k][i], u);
        }
      }
      Meet();
    }
  }

  __device__ void Store(T* factor, T* contributions) const {
    const auto panel = front_.Panel(factor);
    const auto u12 = front_.U12(factor);
    const auto rest = front_.Contribution(contributions);
    for (int j = warp_; j < size_; j += kWarps) {
      for (int i = lane_; i < size_; i += kWarp) {
        T& to = j < front_.d1   ? panel(i, j)
                : i < front_.d1 ? u12(i, j - front_.d1)
                                : rest(i - front_.d1, j - front_.d1);
        to = f_[j][i];
      }
    }
  }

 private:
  static constexpr int kWarps = kTeam / kWarp;

  static __device__ void Meet() {
    if constexpr (kTeam == kWarp) {
      __syncwarp();
    } else {
      __syncthreads();
    }
  }

  const Front& front_;
  const int size_;
  Columns& f_;
  const int thread_;
  const int warp_;
  const int lane_;
};

template <class T, int kSize, int kTeam>
struct SmallFrontShared {
  typename SmallFrontLu<T, kSize, kTeam>::Columns f[kThreads / kTeam];
};

template <class T, int kSize, int kTeam>
__global__ void __launch_bounds__(kThreads)
    SmallFrontKernel(FrontTree tree, FrontSet set, T* factor, T* contributions, int64_t* ipiv,
                     LeastPivots<T> least) {
  auto& shared = SharedByBlock<SmallFrontShared<T, kSize, kTeam>>();
  const int team = static_cast<int>(threadIdx.x) / kTeam;
  const int64_t i = blockIdx.x * int64_t{kThreads / kTeam} + team;
  if (i >= set.count) return;
  const Front front = tree.fronts[set.order[i]];
  const SmallFrontLu<T, kSize, kTeam> lu(front, shared.f[team]);
  lu.Assemble(tree, factor, contributions);
  lu.Factor(ipiv + front.first, least.From(front.first));
  lu.Store(factor, contributions);
}

}  // namespace

template <class T>
cudaError_t LaunchSmallFronts(const FrontTree& tree, const FrontSet& set, T* factor,
                              T* contributions, int64_t* ipiv, const LeastPivots<T>& least,
                              cudaStream_t stream) {
  if (set.count == 0) return cudaSuccess;
  if (set.size <= kTinyFront) {
    constexpr int kFronts = kThreads / kWarp;
    SmallFrontKernel<T, kTinyFront, kWarp>
        <<<static_cast<unsigned>((set.count + kFronts - 1) / kFronts), kThreads, 0, stream>>>(
            tree, set, factor, contributions, ipiv, least);
  } else {
    SmallFrontKernel<T, kSmallFront, kThreads>
        <<<static_cast<unsigned>(set.count), kThreads, 0, stream>>>(tree, set, factor,
                                                                    contributions, ipiv, least);
  }
  return cudaGetLastError();
}

#define CROUT_INSTANTIATE(T)                                                                  \
  template cudaError_t LaunchSmallFronts(const FrontTree&, const FrontSet&, T*, T*, int64_t*, \
                                         const LeastPivots<T>&, cudaStream_t);
CROUT_INSTANTIATE(float)
CROUT_INSTANTIATE(double)
CROUT_INSTANTIATE(Complex<float>)
#undef CROUT_INSTANTIATE

}  // namespace crout::cuda
