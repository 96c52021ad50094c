// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/multifrontal/schedule.h"

#include <algorithm>
#include <map>
#include <utility>

namespace crout::host {
namespace {

// A unit has at most 1/32 of the total work: enough units to balance the load of many cores.
constexpr double kMinUnits = 32;
// Least work, in operations, for which units and tiles pay off.
constexpr double kMinSharedWork = 2e6;

// Operations of a front, plus an overhead per front and per element.
double WorkOf(const Analysis& analysis, int64_t f) {
  const auto d1 = static_cast<double>(analysis.eliminated(f));
  const auto d2 = static_cast<double>(analysis.bordered(f));
  return 2.0 / 3.0 * d1 * d1 * d1 + 2 * d1 * d2 * (d1 + d2) + 8 * (d1 + d2) * (d1 + d2) + 2000;
}

// First-fit allocator of elements.
class Places {
 public:
  int64_t Take(int64_t count) {
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second < count) continue;
      const auto [at, size] = *hole;
      holes_.erase(hole);
      if (size > count) holes_[at + count] = size - count;
      return at;
    }
    return std::exchange(end_, end_ + count);
  }

  void GiveBack(int64_t at, int64_t count) {
    const auto next = holes_.lower_bound(at);
    if (next != holes_.end() && at + count == next->first) {
      count += next->second;
      holes_.erase(next);
    }
    auto before = holes_.lower_bound(at);
    if (before != holes_.begin() && (--before)->first + before->second == at) {
      before->second += count;
    } else {
      holes_[at] = count;
    }
  }

  int64_t end() const { return end_; }

 private:
  std::map<int64_t, int64_t> holes_;  // offset to count
  int64_t end_ = 0;
};

}  // namespace

Schedule::Schedule(const Analysis& analysis)
    : shared_(analysis.fronts()), tiled_(analysis.fronts()), contribution_at_(analysis.fronts()) {
  Divide(analysis);
  PlaceInSubtrees(analysis);
  PlaceShared(analysis);
}

void Schedule::Divide(const Analysis& analysis) {
  const int64_t fronts = analysis.fronts();
  std::vector<double> work(fronts);
  std::vector<int32_t> begin(fronts, -1);  // first front of each front's subtree
  double all = 0;
  for (int64_t f = 0; f < fronts; ++f) {
    if (begin[f] < 0) begin[f] = static_cast<int32_t>(f);
    work[f] += WorkOf(analysis, f);
    const int32_t p = analysis.parent[f];
    if (p == -1) {
      all += work[f];
      continue;
    }
    work[p] += work[f];
    if (begin[p] < 0) begin[p] = begin[f];
  }
  const double most = std::max(kMinSharedWork, all / kMinUnits);
  for (int64_t f = 0; f < fronts; ++f) {
    if (work[f] > most) {
      upper_fronts_.push_back(static_cast<int32_t>(f));
      shared_[f] = true;
      tiled_[f] = WorkOf(analysis, f) > kMinSharedWork;
      continue;
    }
    const int32_t p = analysis.parent[f];
    if (p != -1 && work[p] <= most) continue;
    shared_[f] = true;
    subtrees_.push_back({begin[f], static_cast<int32_t>(f + 1)});
    if (units_.empty() || units_.back().work + work[f] > most) {
      units_.push_back({std::ssize(subtrees_) - 1, std::ssize(subtrees_), work[f]});
    } else {
      units_.back().end = std::ssize(subtrees_);
      units_.back().work += work[f];
    }
  }
  std::stable_sort(units_.begin(), units_.end(),
                   [](const Unit& a, const Unit& b) { return a.work > b.work; });
}

// In postorder, the children's contributions are always the last ones of their depth. Two stacks,
// for even and odd depths, keep a front's contribution apart from its children's.
void Schedule::PlaceInSubtrees(const Analysis& analysis) {
  std::vector<int32_t> depth(analysis.fronts());
  for (int64_t f = analysis.fronts() - 1; f >= 0; --f) {
    if (analysis.parent[f] != -1) depth[f] = depth[analysis.parent[f]] + 1;
  }
  int64_t most[2] = {0, 0};
  int64_t top[2] = {0, 0};
  const auto in_stack = [&](int64_t f) { return !shared_[f]; };
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    if (in_stack(f)) {
      int64_t& at = top[depth[f] % 2];
      contribution_at_[f] = at;
      at += analysis.bordered(f) * analysis.bordered(f);
      most[depth[f] % 2] = std::max(most[depth[f] % 2], at);
    }
    for (int32_t c = analysis.child_start[f]; c < analysis.child_start[f + 1]; ++c) {
      const int32_t child = analysis.child[c];
      if (!in_stack(child)) continue;
      top[depth[child] % 2] -= analysis.bordered(child) * analysis.bordered(child);
    }
  }
  for (int64_t f = 0; f < analysis.fronts(); ++f) {
    if (in_stack(f) && depth[f] % 2 == 1) contribution_at_[f] += most[0];
  }
  thread_entries_ = most[0] + most[1];
}

void Schedule::PlaceShared(const Analysis& analysis) {
  Places places;
  const auto take = [&](int64_t f) {
    const int64_t d2 = analysis.bordered(f);
    if (d2 > 0) contribution_at_[f] = places.Take(d2 * d2);
  };
  for (const Subtree& subtree : subtrees_) take(subtree.end - 1);
  for (const int32_t f : upper_fronts_) {
    take(f);
    for (int32_t c = analysis.child_start[f]; c < analysis.child_start[f + 1]; ++c) {
      const int64_t d2 = analysis.bordered(analysis.child[c]);
      if (d2 > 0) places.GiveBack(contribution_at_[analysis.child[c]], d2 * d2);
    }
  }
  shared_entries_ = places.end();
}

size_t Schedule::Bytes(const Analysis& analysis) {
  constexpr size_t kBytesPerFront = 2 * sizeof(int64_t) + sizeof(Subtree) + sizeof(Unit) + 64;
  return static_cast<size_t>(analysis.fronts()) * kBytesPerFront;
}

}  // namespace crout::host
