// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/cuda/multifrontal/factor_block.h"
#include "kernels/cuda/multifrontal/front_solve.h"
#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/cuda/multifrontal/multifrontal.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

// Approximate number of a front's rows per block of threads.
constexpr int64_t kRowsOfBlock = 128;

// The workspace for the right-hand sides that pass through the factor together.
struct Workspace {
  Workspace(const Analysis& analysis, DType dtype, int64_t together) {
    const size_t each = SizeOf(dtype) * together;
    BlockPlan plan(0);
    b = plan.Add(analysis.n * each);
    x = plan.Add(analysis.n * each);
    left = plan.Add(analysis.place_in_parent.size() * each);
    bytes = plan.end();
  }

  size_t b, x, left;
  size_t bytes;
};

int64_t ColumnsPerPass(DType dtype, int64_t k) {
  return DispatchDevice(dtype, [&](auto tag) -> int64_t {
    return std::min<int64_t>(k, kMaxColumnsPerPass<typename decltype(tag)::type>);
  });
}

template <class T>
class Solver {
 public:
  Solver(Context& context, const Analysis& analysis, const std::byte* factor, Op op,
         const MatrixView<T>& b, std::byte* workspace, bool scale)
      : context_(context),
        stream_(context.stream()),
        analysis_(analysis),
        block_(analysis, kDTypeOf<T>),
        factor_(factor),
        order_(reinterpret_cast<const int32_t*>(factor + block_.order)),
        columns_per_pass_(ColumnsPerPass(kDTypeOf<T>, b.cols)),
        b_(b),
        scales_(scale ? FrontScalesOf(analysis, block_, factor) : FrontScales()) {
    const Workspace layout(analysis, kDTypeOf<T>, columns_per_pass_);
    solve_.tree = FrontTreeOf(analysis, block_, factor);
    solve_.op = op;
    solve_.overlap = context.core().limits().dependent_launch;
    solve_.factor = reinterpret_cast<const T*>(factor);
    solve_.permutation = reinterpret_cast<const int32_t*>(factor + block_.permutation);
    solve_.b = reinterpret_cast<T*>(workspace + layout.b);
    solve_.x = reinterpret_cast<T*>(workspace + layout.x);
    solve_.left = reinterpret_cast<T*>(workspace + layout.left);
  }

  absl::Status Run() {
    CROUT_ASSIGN_OR_RETURN(levels_, ReadLevelBatches(context_, analysis_, block_, factor_));
    for (int64_t j = 0; j < b_.cols; j += columns_per_pass_) {
      solve_.columns = static_cast<int>(std::min(columns_per_pass_, b_.cols - j));
      CROUT_RETURN_IF_ERROR(RunFor({&b_(0, j), b_.rows, solve_.columns, b_.ld}));
    }
    return absl::OkStatus();
  }

 private:
  absl::Status RunFor(const MatrixView<T>& b) {
    const bool plain = solve_.op == Op::kNone;
    const auto* const rows = reinterpret_cast<const int32_t*>(factor_ + block_.rows);
    const auto* const columns = reinterpret_cast<const int32_t*>(factor_ + block_.columns);
    CROUT_RETURN_IF_CUDA_ERROR(LaunchGather(solve_, analysis_.n, plain ? rows : columns,
                                            plain ? scales_.row : scales_.column,
                                            {b.data, b.rows, b.cols, b.ld}, stream_));
    // The front of kept unknowns is not factored; its x is the sum that its children pass to it.
    const int64_t first = analysis_.kept > 0 ? 1 : 0;
    for (int64_t level = analysis_.levels() - 1; level >= first; --level) {
      CROUT_RETURN_IF_ERROR(StartUp(Heavy(level), plain));
      CROUT_RETURN_IF_ERROR(Steps(level, LaunchStepUp<T>));
      CROUT_RETURN_IF_CUDA_ERROR(LaunchLightUp(solve_, SetOf(Light(level), order_), stream_));
    }
    if (first > 0) {
      CROUT_RETURN_IF_ERROR(StartUp(levels_.Level(0), /*interchanges=*/false));
    }
    for (int64_t level = first; level < analysis_.levels(); ++level) {
      CROUT_RETURN_IF_ERROR(ForLevel(Heavy(level), [&](const FrontSet& set) {
        return LaunchStartDown(solve_, set, stream_);
      }));
      CROUT_RETURN_IF_ERROR(Steps(level, LaunchStepDown<T>));
      CROUT_RETURN_IF_CUDA_ERROR(LaunchLightDown(solve_, SetOf(Light(level), order_), stream_));
    }
    CROUT_RETURN_IF_CUDA_ERROR(LaunchScatter(solve_, analysis_.n, plain ? columns : rows,
                                             plain ? scales_.column : scales_.row, b, stream_));
    return absl::OkStatus();
  }

  absl::Status StartUp(std::span<const FrontBatch> batches, bool interchanges) {
    const auto of_many = [](const FrontBatch& batch) {
      return batch.children >= kManyChildren &&
             int64_t{batch.count()} * batch.size <= kMaxRowBlocks;
    };
    while (!batches.empty()) {
      const bool many = of_many(batches.front());
      size_t count = 1;
      while (!many && count < batches.size() && !of_many(batches[count])) ++count;
      const FrontSet set = SetOf(batches.first(count), order_);
      CROUT_RETURN_IF_CUDA_ERROR(many ? LaunchStartUpOfMany(solve_, set, interchanges, stream_)
                                      : LaunchStartUp(solve_, set, interchanges, stream_));
      batches = batches.subspan(count);
    }
    return absl::OkStatus();
  }

  // Light: the last batches of the level, whose fronts all have few rows. Heavy: the other batches.
  std::span<const FrontBatch> Light(int64_t level) const {
    return levels_.Level(level).subspan(Heavy(level).size());
  }
  std::span<const FrontBatch> Heavy(int64_t level) const {
    const std::span<const FrontBatch> batches = levels_.Level(level);
    size_t count = batches.size();
    while (count > 0 && batches[count - 1].d1 <= kLightColumns &&
           batches[count - 1].size <= kLightFront) {
      --count;
    }
    return batches.first(count);
  }

  template <class Launch>
  absl::Status Steps(int64_t level, Launch launch) {
    std::span<const FrontBatch> batches = Heavy(level);
    for (int step = 0;; ++step) {
      // The batches up to the last one that has this step.
      const int64_t done = int64_t{step} * kSolveTile<T>;
      while (!batches.empty() && batches.back().d1 <= done)
        batches = batches.first(batches.size() - 1);
      if (batches.empty()) return absl::OkStatus();
      CROUT_RETURN_IF_ERROR(ForLevel(
          batches, [&](const FrontSet& set) { return launch(solve_, set, step, stream_); }));
    }
  }

  template <class F>
  absl::Status ForLevel(std::span<const FrontBatch> batches, F enqueue) {
    absl::Status status;
    ForSets(batches, order_, kRowsOfBlock, [&](const FrontSet& set) {
      if (status.ok()) status = CudaStatus(enqueue(set), "sparse solve kernel");
    });
    return status;
  }

  Context& context_;
  const cudaStream_t stream_;
  const Analysis& analysis_;
  LevelBatches levels_;
  const FactorBlock block_;
  const std::byte* const factor_;
  const int32_t* const order_;
  const int64_t columns_per_pass_;
  const MatrixView<T> b_;
  const FrontScales scales_;
  FrontSolve<T> solve_;
};

}  // namespace

size_t MultifrontalSolveWorkspaceBytes(const Analysis& analysis, DType dtype, int64_t k) {
  return Workspace(analysis, dtype, ColumnsPerPass(dtype, k)).bytes;
}

absl::Status SolveMultifrontal(Context& context, const Analysis& analysis, const std::byte* factor,
                               Op op, const AnyMatrix& b, std::span<std::byte> workspace,
                               bool scale) {
  if (b.rows != analysis.n || analysis.unmatched_row >= 0) {
    return absl::InvalidArgumentError("the right-hand side does not match the factor");
  }
  if (b.rows == 0 || b.cols == 0) return absl::OkStatus();
  return DispatchDevice(b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Solver<T>(context, analysis, factor, op, b.As<T>(), workspace.data(), scale).Run();
  });
}

}  // namespace crout::cuda
