// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/methods.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <vector>

#include "absl/status/status.h"
#include "kernels/host/block_lu/tile_lu.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/solve/tile_solve.h"
#include "kernels/util/checked_math.h"

namespace crout::host {
namespace {

constexpr int64_t kDefaultTile = 256;

// Priority of the task that computes tile (i, j) in step k. The OpenMP runtime honors priorities up
// to OMP_MAX_TASK_PRIORITY.
struct Priorities {
  bool published = false;
  int most = 0;  // Highest priority the runtime honors.

  // Published variant: decreases with the distance from the diagonal. Otherwise: 2 for the diagonal
  // tile of step k, 1 for tiles in block rows or columns up to k + 1, which step k + 1 needs first,
  // and 0 for the rest.
  int ForTile(int64_t k, int64_t i, int64_t j) const {
    if (published) return static_cast<int>(std::clamp<int64_t>(most - (j - i), 0, most));
    if (i == k && j == k) return 2;
    return i <= k + 1 || j <= k + 1 ? 1 : 0;
  }
};

template <class T>
class BlockLu {
 public:
  // `inverses` holds 2 * kInverseLeaf elements per row of `a`.
  BlockLu(const MatrixView<T>& a, const LuParameters& parameters, T* inverses, DeviceReport& report,
          StopRequested stop)
      : a_(a),
        tile_(parameters.block_size > 0 ? parameters.block_size : kDefaultTile),
        priorities_{parameters.variant == MethodVariant::kPublished, omp_get_max_task_priority()},
        inverses_(inverses),
        report_(report),
        stop_(stop),
        tiles_((a.rows + tile_ - 1) / tile_),
        token_(tiles_ * tiles_) {}

  void Run(int cores) {
#pragma omp parallel num_threads(cores)
#pragma omp single
    for (int64_t k = 0; k < tiles_; ++k) SpawnStep(k);
    if (no_memory_) throw std::bad_alloc();
  }

  // LAPACK's info, or the 1-based index of the first pivot that underflows.
  int64_t info() const { return info_; }
  bool stopped() const { return stopped_; }

 private:
  MatrixView<T> Tile(int64_t i, int64_t j) const {
    const int64_t rows = std::min(tile_, a_.rows - i * tile_);
    const int64_t cols = std::min(tile_, a_.cols - j * tile_);
    return Block(a_, i * tile_, j * tile_, rows, cols);
  }

  TileInverses<T> Inverses(int64_t k) const {
    return {Tile(k, k), inverses_ + 2 * kInverseLeaf * tile_ * k};
  }

  // Element that represents tile (i, j) in depend clauses.
  char* Token(int64_t i, int64_t j) { return &token_[i + j * tiles_]; }

  void SpawnStep(int64_t k) {
    [[maybe_unused]] char* const diagonal = Token(k, k);
    [[maybe_unused]] const int priority = priorities_.ForTile(k, k, k);
#pragma omp task depend(inout : diagonal[0]) priority(priority)
    FactorDiagonal(k);
    for (int64_t m = k + 1; m < tiles_; ++m) SpawnRowAndColumn(k, m, diagonal);
    // Column by column, because step k + 1 starts with the first column.
    for (int64_t j = k + 1; j < tiles_; ++j) {
      for (int64_t i = k + 1; i < tiles_; ++i) SpawnUpdate(k, i, j);
    }
  }

  void SpawnRowAndColumn(int64_t k, int64_t m, [[maybe_unused]] const char* diagonal) {
    [[maybe_unused]] char* const row = Token(k, m);
    [[maybe_unused]] char* const column = Token(m, k);
    [[maybe_unused]] const int of_column = priorities_.ForTile(k, m, k);
    [[maybe_unused]] const int of_row = priorities_.ForTile(k, k, m);
#pragma omp task depend(in : diagonal[0]) depend(inout : column[0]) priority(of_column)
    if (Takes(k)) Inverses(k).SolveRight(Tile(m, k));
#pragma omp task depend(in : diagonal[0]) depend(inout : row[0]) priority(of_row)
    if (Takes(k)) Inverses(k).SolveLeft(Tile(k, m));
  }

  void SpawnUpdate(int64_t k, int64_t i, int64_t j) {
    [[maybe_unused]] char* const left = Token(i, k);
    [[maybe_unused]] char* const top = Token(k, j);
    [[maybe_unused]] char* const tile = Token(i, j);
    [[maybe_unused]] const int priority = priorities_.ForTile(k, i, j);
#pragma omp task depend(in : left[0], top[0]) depend(inout : tile[0]) priority(priority)
    if (Takes(k)) SubtractProduct(Tile(i, k), Tile(k, j), Tile(i, j));
  }

  void FactorDiagonal(int64_t k) {
    if (!Takes(k)) return;
    report_.ReportColumns(k * tile_);
    if (Stops()) {
      stopped_ = true;
      return;
    }
    const int64_t refused = FactorTile(Tile(k, k));
    if (refused != 0) {
      info_ = k * tile_ + refused;
    } else {
      Inverses(k).Fill();
    }
  }

  // An exception that leaves a parallel region would end the process.
  bool Stops() {
    try {
      return stop_();
    } catch (const std::bad_alloc&) {
      no_memory_ = true;
      return true;
    }
  }

  // Returns true if step k may run: nothing was stopped, and no pivot of the steps up to k was
  // refused. Tasks of earlier steps still run after a refusal, so that the partial result is always
  // the same.
  bool Takes(int64_t k) const {
    const int64_t info = info_;
    return !stopped_ && (info == 0 || k < (info - 1) / tile_);
  }

  const MatrixView<T> a_;
  const int64_t tile_;
  const Priorities priorities_;
  T* const inverses_;
  DeviceReport& report_;
  const StopRequested stop_;
  const int64_t tiles_;
  std::vector<char> token_;
  std::atomic<int64_t> info_{0};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> no_memory_{false};
};

class HostBlockLu final : public LuAlgorithm {
 public:
  explicit HostBlockLu(Executor& executor) : executor_(executor) {}

  const MethodTraits& traits() const override { return traits_; }

  absl::StatusOr<size_t> WorkspaceBytes(DType dtype, int64_t n,
                                        const LuParameters&) const override {
    return MatrixBytes(n, 2 * kInverseLeaf, dtype);
  }

  double PredictSeconds(DType dtype, int64_t n) const override {
    // Same speed as getrf, but no pivoting: `auto` must not choose block_lu.
    return BlockedLuSeconds(dtype, n, WidthFor(n * n), executor_.budget().total(), kTileLeaf);
  }

  absl::Status Factor(ExecutionContext& context, const AnyMatrix& a, int64_t* ipiv,
                      std::span<std::byte> workspace, const LuParameters& parameters,
                      StopRequested stop) const override {
    for (int64_t k = 0; k < a.rows; ++k) ipiv[k] = k + 1;
    bool stopped = false;
    executor_.Run(WidthFor(a.rows * a.cols), [&](int cores) {
      DispatchDType(a.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        BlockLu lu(a.As<T>(), parameters, reinterpret_cast<T*>(workspace.data()), context.report(),
                   stop);
        lu.Run(cores);
        context.report().info = static_cast<int32_t>(lu.info());
        stopped = lu.stopped();
      });
    });
    return stopped ? absl::CancelledError("the job was stopped between tiles") : absl::OkStatus();
  }

 private:
  Executor& executor_;
  const MethodTraits traits_{.name = "block_lu",
                             .description = "blocked LU without pivoting, OpenMP task graph",
                             .types = kAllTypes,
                             .unit_diagonal = UnitDiagonal::kL,
                             .pivoting = PivotRule::kNone,
                             .block_sizes = {32, 1024},
                             .variants = {MethodVariant::kFast, MethodVariant::kPublished},
                             .stoppable = true};
};

}  // namespace

std::unique_ptr<LuAlgorithm> MakeBlockLu(Executor& executor) {
  return std::make_unique<HostBlockLu>(executor);
}

}  // namespace crout::host
