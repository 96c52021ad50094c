// Which fronts are worked on side by side, and where their contributions wait.
#ifndef CROUT_KERNELS_HOST_MULTIFRONTAL_SCHEDULE_H_
#define CROUT_KERNELS_HOST_MULTIFRONTAL_SCHEDULE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/sparse/analysis.h"

namespace crout::host {

// A function of the analysis alone. First the units are worked on, each by one thread. Then the
// fronts above them follow in postorder: large ones by all threads, tile by tile, small ones by one
// thread, since threads that meet at each front of a chain take longer than its operations.
class Schedule {
 public:
  explicit Schedule(const Analysis& analysis);

  // Fronts [begin, end): a subtree.
  struct Subtree {
    int32_t begin;
    int32_t end;
  };
  // Subtrees [begin, end) of subtrees().
  struct Unit {
    int64_t begin;
    int64_t end;
    double work;
  };
  const std::vector<Subtree>& subtrees() const { return subtrees_; }
  const std::vector<Unit>& units() const { return units_; }  // the most work first
  const std::vector<int32_t>& upper_fronts() const { return upper_fronts_; }
  // Whether all threads share this upper front.
  bool is_tiled(int64_t f) const { return tiled_[f]; }

  // Where a front's contribution lies. That of a subtree's root or of an upper front: in the shared
  // elements. Others': in the elements of the thread that works on the subtree.
  bool is_shared(int64_t f) const { return shared_[f]; }
  int64_t contribution_at(int64_t f) const { return contribution_at_[f]; }
  int64_t shared_entries() const { return shared_entries_; }
  int64_t thread_entries() const { return thread_entries_; }

  // What all this takes, at most.
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
