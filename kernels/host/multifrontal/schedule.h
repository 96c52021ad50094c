// SPDX-License-Identifier: Apache-2.0

// Order in which threads process fronts, and the places of their contributions.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_SCHEDULE_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/sparse/analysis.h"

namespace crout::host {

// Depends only on the analysis. Units run first, each on one thread. The fronts above them follow
// in postorder: large ones on all threads, tile by tile; small ones on one thread, because
// synchronizing threads at each front of a chain takes longer than its operations.
class Schedule {
 public:
  explicit Schedule(const Analysis& analysis);

  // The fronts [begin, end) of a subtree.
  struct Subtree {
    int32_t begin;
    int32_t end;
  };
  // The subtrees [begin, end) of subtrees().
  struct Unit {
    int64_t begin;
    int64_t end;
    double work;
  };
  const std::vector<Subtree>& subtrees() const { return subtrees_; }
  const std::vector<Unit>& units() const { return units_; }  // by decreasing work
  const std::vector<int32_t>& upper_fronts() const { return upper_fronts_; }
  // True if all threads work on this upper front together.
  bool is_tiled(int64_t f) const { return tiled_[f]; }

  // Place of a front's contribution. Roots of subtrees and upper fronts use the shared elements.
  // Other fronts use the elements of the thread that processes their subtree.
  bool is_shared(int64_t f) const { return shared_[f]; }
  int64_t contribution_at(int64_t f) const { return contribution_at_[f]; }
  int64_t shared_entries() const { return shared_entries_; }
  int64_t thread_entries() const { return thread_entries_; }

  // Upper bound on the schedule's size, in bytes.
  static size_t Bytes(const Analysis& analysis);

 private:
  void Divide(const Analysis& analysis);
  void PlaceInSubtrees(const Analysis& analysis);
  void PlaceShared(const Analysis& analysis);

  std::vector<Subtree> subtrees_;
  std::vector<Unit> units_;
  std::vector<int32_t> upper_fronts_;
  std::vector<bool> shared_;
  std::vector<bool> tiled_;
  std::vector<int64_t> contribution_at_;
  int64_t shared_entries_ = 0;
  int64_t thread_entries_ = 0;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_MULTIFRONTAL_SCHEDULE_H_
