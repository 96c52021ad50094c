// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/multifrontal/level_plan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <iterator>
#include <numeric>
#include <utility>

#include "kernels/cuda/multifrontal/small_front.h"

namespace crout::cuda {
namespace {

constexpr int kClasses = 16;
constexpr int64_t kSmallest = 32;  // upper bound of the first class

// 0 for d1 up to 32; increases by one with every doubling.
int ClassOfD1(int64_t d1) {
  return std::min<int>(kClasses - 1, static_cast<int>(std::bit_width(static_cast<uint64_t>(
                                         (std::max<int64_t>(d1, 1) - 1) / kSmallest))));
}
// 0 without a border, 1 for d2 up to 32; increases by one with every factor of four.
int ClassOfD2(int64_t d2) {
  if (d2 == 0) return 0;
  const auto doublings = std::bit_width(static_cast<uint64_t>((d2 - 1) / kSmallest));
  return std::min<int>(kClasses - 1, 1 + (static_cast<int>(doublings) + 1) / 2);
}

// The properties of a front that the plan uses, stored together.
struct Shape {
  int32_t d1;
  int32_t d2;
  int16_t bucket;  // sort key of fronts within a level
  int32_t children;
};

int16_t BucketOf(int64_t d1, int64_t d2) {
  constexpr int kLast = kClasses * kClasses - 1;
  if (IsSmallFront(d1 + d2)) return d1 + d2 <= kTinyFront ? kLast : kLast - 1;
  return static_cast<int16_t>((kClasses - 1 - ClassOfD1(d1)) * kClasses + kClasses - 1 -
                              ClassOfD2(d2));
}

std::vector<Shape> ShapesOf(const Analysis& analysis) {
  std::vector<Shape> shapes(analysis.fronts());
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    const int64_t d1 = analysis.eliminated(f);
    const int64_t d2 = analysis.bordered(f);
    shapes[f] = {static_cast<int32_t>(d1), static_cast<int32_t>(d2), BucketOf(d1, d2),
                 analysis.child_start[f + 1] - analysis.child_start[f]};
  }
  return shapes;
}

// Sets the sizes of a batch, and sorts its fronts.
void Measure(const std::vector<Shape>& shapes, std::vector<int32_t>& order, FrontBatch& batch) {
  for (int32_t i = batch.begin; i < batch.end; ++i) {
    const Shape& shape = shapes[order[i]];
    batch.d1 = std::max(batch.d1, shape.d1);
    batch.d2 = std::max(batch.d2, shape.d2);
    batch.size = std::max(batch.size, shape.d1 + shape.d2);
    batch.children = std::max(batch.children, shape.children);
  }
  if (batch.d1 <= kSmallest) return;
  std::stable_sort(order.begin() + batch.begin, order.begin() + batch.end,
                   [&](int32_t f, int32_t g) { return shapes[f].d1 > shapes[g].d1; });
}

}  // namespace

LevelBatches::LevelBatches(std::vector<FrontBatch> batches, int64_t levels)
    : batches_(std::move(batches)), level_begin_(levels + 1) {
  for (const FrontBatch& batch : batches_) ++level_begin_[batch.level + 1];
  std::partial_sum(level_begin_.begin(), level_begin_.end(), level_begin_.begin());
}

LevelPlan::LevelPlan(const Analysis& analysis) : order(analysis.fronts()) {
  const std::vector<Shape> shapes = ShapesOf(analysis);
  std::vector<FrontBatch> all;
  std::array<int32_t, kClasses * kClasses> begin;
  for (int64_t level = 0; level < analysis.levels(); ++level) {
    const std::span<const int32_t> fronts(
        analysis.level_front.data() + analysis.level_start[level],
        analysis.level_front.data() + analysis.level_start[level + 1]);
    const size_t first = all.size();
    begin.fill(0);
    for (const int32_t f : fronts) ++begin[shapes[f].bucket];
    int32_t at = analysis.level_start[level];
    for (int32_t& count : begin) {
      const int32_t next = at + count;
      if (count > 0) all.push_back({at, next, static_cast<int32_t>(level), 0, 0, 0, 0, count});
      count = at;
      at = next;
    }
    for (const int32_t f : fronts) order[begin[shapes[f].bucket]++] = f;
    for (size_t b = first; b < all.size(); ++b) Measure(shapes, order, all[b]);
  }
  batches = LevelBatches(std::move(all), analysis.levels());
}

std::vector<int32_t> LevelPlan::FrontsWithColumns(const Analysis& analysis, int32_t d1) const {
  std::vector<int32_t> fronts;
  for (const FrontBatch& batch : batches.all()) {
    if (batch.d1 < d1) continue;
    std::copy_if(order.begin() + batch.begin, order.begin() + batch.end, std::back_inserter(fronts),
                 [&](int32_t f) { return analysis.eliminated(f) >= d1; });
  }
  return fronts;
}

int64_t LevelPlan::MaxBatches(const Analysis& analysis) {
  return 1 + std::min<int64_t>(analysis.fronts(), analysis.levels() * kClasses * kClasses);
}

FrontSet SetOf(std::span<const FrontBatch> batches, const int32_t* order) {
  if (batches.empty()) return {};
  FrontSet set;
  set.order = order + batches.front().begin;
  set.count = batches.back().end - batches.front().begin;
  for (const FrontBatch& batch : batches) {
    set.d1 = std::max(set.d1, batch.d1);
    set.d2 = std::max(set.d2, batch.d2);
    set.size = std::max(set.size, batch.size);
    set.children = std::max(set.children, batch.children);
  }
  return set;
}

}  // namespace crout::cuda
