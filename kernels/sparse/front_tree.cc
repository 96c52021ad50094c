// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/front_tree.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Entries of a triangle of d1 columns and the d2 rows below it.
double Entries(double d1, double d2) { return d1 * (d1 + 1) / 2 + d1 * d2; }

// True if a front with this many columns may have this fraction of zeros in its columns of L. Small
// fronts may have more: their cost is dominated by calls, not operations.
bool MayHaveZeros(int64_t columns, double part) {
  if (columns <= 4) return part < 0.3;
  if (columns <= 16) return part < 0.1;
  if (columns <= 48) return part < 0.05;
  return part < 0.02;
}

struct Supernode {
  int32_t columns = 0;   // d1
  int32_t bordered = 0;  // d2
  int32_t parent = -1;
  int32_t into = -1;  // supernode it was merged into
  // Children as a linked list. Vectors would take most of the time for small fronts.
  int32_t first_child = -1;
  int32_t sibling = -1;
  double zeros = 0;
};

class Merger {
 public:
  Merger(const EliminationTree& tree, StopRequested stop) : tree_(tree), counter_(stop) {}

  absl::StatusOr<FrontTree> Make() {
    FindSupernodes();
    Merge();
    SortChildren();
    CROUT_RETURN_IF_ERROR(counter_.status());
    return Number();
  }

 private:
  FrontTree Number() {
    FrontTree fronts;
    std::vector<int32_t> number(nodes_.size(), -1);
    const std::vector<int32_t> post = PostorderOfKept();
    fronts.bordered.reserve(post.size());
    fronts.parent.reserve(post.size());
    for (const int32_t s : post) {
      number[s] = static_cast<int32_t>(fronts.bordered.size());
      fronts.bordered.push_back(nodes_[s].bordered);
      fronts.parent.push_back(nodes_[s].parent);  // renumbered below
    }
    for (int32_t& p : fronts.parent) p = p == -1 ? -1 : number[p];
    fronts.first_position.assign(fronts.bordered.size() + 1, 0);
    for (const Supernode& node : nodes_) {
      if (node.into == -1) {
        fronts.first_position[number[&node - nodes_.data()] + 1] = node.columns;
      }
    }
    std::partial_sum(fronts.first_position.begin(), fronts.first_position.end(),
                     fronts.first_position.begin());
    // Within a front, columns keep their order, in which children come first.
    std::vector<int32_t> next(fronts.first_position.begin(), fronts.first_position.end());
    fronts.order.resize(tree_.order.size());
    for (size_t k = 0; k < tree_.order.size(); ++k) {
      fronts.order[next[number[Kept(node_of_[k])]]++] = tree_.order[k];
    }
    return fronts;
  }

  void FindSupernodes() {
    const auto n = static_cast<int32_t>(tree_.order.size());
    node_of_.resize(n);
    int32_t nodes = 0;
    for (int32_t k = 0; k < n; ++k) {
      const bool same =
          k > 0 && tree_.parent[k - 1] == k && tree_.count[k - 1] == tree_.count[k] + 1;
      if (!same) ++nodes;
      node_of_[k] = nodes - 1;
    }
    nodes_.resize(nodes);
    for (int32_t k = 0; k < n; ++k) {
      Supernode& node = nodes_[node_of_[k]];
      ++node.columns;
      node.bordered = tree_.count[k] - 1;
    }
    for (int32_t k = 0; k < n; ++k) {
      const int32_t p = tree_.parent[k];
      if (p != -1 && node_of_[p] != node_of_[k]) nodes_[node_of_[k]].parent = node_of_[p];
    }
    for (int32_t s = static_cast<int32_t>(nodes_.size()) - 1; s >= 0; --s) {
      const int32_t p = nodes_[s].parent;
      if (p != -1) nodes_[s].sibling = std::exchange(nodes_[p].first_child, s);
    }
  }

  // Sets children_ to the children of s, in list order.
  void ListChildren(int32_t s) {
    children_.clear();
    AppendChildren(s, children_);
  }
  void AppendChildren(int32_t s, std::vector<int32_t>& list) const {
    for (int32_t c = nodes_[s].first_child; c != -1; c = nodes_[c].sibling) list.push_back(c);
  }
  void LinkChildren(int32_t s, const std::vector<int32_t>& list) {
    int32_t next = -1;
    for (auto c = list.rbegin(); c != list.rend(); ++c) {
      nodes_[*c].sibling = std::exchange(next, *c);
    }
    nodes_[s].first_child = next;
  }

  // Merges from the leaves up, children with the largest border first because they add the fewest
  // zeros. A child that was not merged can be considered again on every level. Incomplete if the
  // counter stops.
  void Merge() {
    std::vector<int32_t> kept;
    for (int32_t s = 0; s < std::ssize(nodes_); ++s) {
      if (counter_.Stops()) return;
      if (nodes_[s].first_child == -1) continue;
      ListChildren(s);
      CountSort(children_.size());
      const auto larger = [this](int32_t a, int32_t b) {
        return nodes_[a].bordered > nodes_[b].bordered;
      };
      if (!std::ranges::is_sorted(children_, larger)) std::ranges::stable_sort(children_, larger);
      kept.clear();
      for (const int32_t c : children_) {
        if (MergeChild(c, s)) {
          AppendChildren(c, kept);
        } else {
          kept.push_back(c);
        }
      }
      for (const int32_t c : kept) nodes_[c].parent = s;
      LinkChildren(s, kept);
    }
  }

  bool MergeChild(int32_t c, int32_t s) {
    Supernode& node = nodes_[s];
    Supernode& child = nodes_[c];
    const double zeros =
        node.zeros + child.zeros +
        static_cast<double>(child.columns) * (node.columns + node.bordered - child.bordered);
    const int64_t columns = int64_t{node.columns} + child.columns;
    if (!MayHaveZeros(columns, zeros / Entries(static_cast<double>(columns), node.bordered))) {
      return false;
    }
    child.into = s;
    node.columns = static_cast<int32_t>(columns);
    node.zeros = zeros;
    return true;
  }

  // Counts sorting as one step per element: a comparison takes a few nanoseconds.
  void CountSort(size_t elements) { counter_.Count(static_cast<int64_t>(elements)); }

  // Returns the supernode that s was finally merged into.
  int32_t Kept(int32_t s) {
    int32_t kept = s;
    while (nodes_[kept].into != -1) kept = nodes_[kept].into;
    while (nodes_[s].into != -1) {
      const int32_t next = nodes_[s].into;
      if (next != kept) nodes_[s].into = kept;
      s = next;
    }
    return kept;
  }

  // Sorts children as in Liu's algorithm: by decreasing difference between the subtree's peak
  // memory and its contribution.
  void SortChildren() {
    std::vector<double> peak(nodes_.size());
    const auto left = [this](int32_t s) { return 1.0 * nodes_[s].bordered * nodes_[s].bordered; };
    const auto first = [&](int32_t a, int32_t b) {
      const double of_a = peak[a] - left(a);
      const double of_b = peak[b] - left(b);
      return of_a != of_b ? of_a > of_b : a < b;
    };
    for (int32_t s = 0; s < std::ssize(nodes_); ++s) {
      if (counter_.Stops()) return;
      if (nodes_[s].into != -1) continue;
      if (nodes_[s].first_child == -1) {
        peak[s] = left(s);
        continue;
      }
      ListChildren(s);
      CountSort(children_.size());
      if (!std::ranges::is_sorted(children_, first)) {
        std::ranges::sort(children_, first);
        LinkChildren(s, children_);
      }
      double waiting = 0;
      for (const int32_t c : children_) {
        peak[s] = std::max(peak[s], waiting + peak[c]);
        waiting += left(c);
      }
      peak[s] = std::max(peak[s], waiting + left(s));
    }
  }

  std::vector<int32_t> PostorderOfKept() const {
    std::vector<int32_t> post, stack;
    post.reserve(nodes_.size());
    std::vector<int32_t> next(nodes_.size());
    for (size_t s = 0; s < nodes_.size(); ++s) next[s] = nodes_[s].first_child;
    for (int32_t s = 0; s < std::ssize(nodes_); ++s) {
      if (nodes_[s].into != -1 || nodes_[s].parent != -1) continue;
      stack.push_back(s);
      while (!stack.empty()) {
        const int32_t top = stack.back();
        const int32_t child = next[top];
        if (child != -1) {
          next[top] = nodes_[child].sibling;
          stack.push_back(child);
        } else {
          post.push_back(top);
          stack.pop_back();
        }
      }
    }
    return post;
  }

  const EliminationTree& tree_;
  StopCounter counter_;
  std::vector<Supernode> nodes_;
  std::vector<int32_t> node_of_;   // supernode of each position
  std::vector<int32_t> children_;  // children of one supernode
};

}  // namespace

absl::StatusOr<FrontTree> MakeFrontTree(const EliminationTree& tree, StopRequested stop) {
  return Merger(tree, stop).Make();
}

}  // namespace crout
