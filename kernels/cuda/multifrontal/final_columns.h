// SPDX-License-Identifier: Apache-2.0

// Counts the columns of fronts for reports of progress.
#ifndef CROUT_KERNELS_CUDA_MULTIFRONTAL_FINAL_COLUMNS_H_
#define CROUT_KERNELS_CUDA_MULTIFRONTAL_FINAL_COLUMNS_H_

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/multifrontal/level_plan.h"
#include "kernels/sparse/analysis.h"

namespace crout::cuda {

// Counts the columns of fronts as they are enqueued.
class FinalColumns {
 public:
  // Both arguments outlive the object. Batches are ranges of `order`.
  FinalColumns(const Analysis& analysis, std::span<const int32_t> order)
      : analysis_(analysis), order_(order) {}

  // Adds the fronts of `batch`.
  void Enqueue(const FrontBatch& batch) { uncounted_.push_back({batch.begin, batch.end}); }

  // Returns the columns of all enqueued fronts. Reads each front once, and only here: a short
  // factorization never calls this function and reads no front.
  int64_t Enqueued() {
    for (const Range& range : uncounted_) {
      for (int32_t i = range.begin; i < range.end; ++i) columns_ += analysis_.eliminated(order_[i]);
    }
    uncounted_.clear();
    return columns_;
  }

  void Restart() {
    uncounted_.clear();
    columns_ = 0;
  }

 private:
  struct Range {
    int32_t begin;
    int32_t end;
  };

  const Analysis& analysis_;
  const std::span<const int32_t> order_;
  std::vector<Range> uncounted_;
  int64_t columns_ = 0;
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_MULTIFRONTAL_FINAL_COLUMNS_H_
