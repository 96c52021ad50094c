#include "kernels/sparse/front_tree.h"

#include <algorithm>
#include <numeric>

namespace crout {
namespace {

// Of a triangle of d1 columns and d2 rows below it.
double Entries(double d1, double d2) { return d1 * (d1 + 1) / 2 + d1 * d2; }

// Whether a front of so many columns may have such a part of zeros in its columns of L. Small ones
// may: they cost calls rather than operations.
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
  int32_t into = -1;  // merged into this one
  double zeros = 0;
};

class Merger {
 public:
  explicit Merger(const EliminationTree& tree) : tree_(tree) {
    FindSupernodes();
    Merge();
  }

  FrontTree Make() {
    SortChildren();
    FrontTree fronts;
    std::vector<int32_t> number(nodes_.size(), -1);
    for (const int32_t s : PostorderOfKept()) {
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
    // Within a front columns keep the order that they had: children first.
    std::vector<int32_t> next(fronts.first_position.begin(), fronts.first_position.end());
    fronts.order.resize(tree_.order.size());
    for (size_t k = 0; k < tree_.order.size(); ++k) {
      fronts.order[next[number[Kept(node_of_[k])]]++] = tree_.order[k];
    }
    return fronts;
  }

 private:
  void FindSupernodes() {
    const auto n = static_cast<int32_t>(tree_.order.size());
    node_of_.resize(n);
    for (int32_t k = 0; k < n; ++k) {
      const bool same =
          k > 0 && tree_.parent[k - 1] == k && tree_.count[k - 1] == tree_.count[k] + 1;
      if (!same) nodes_.emplace_back();
      node_of_[k] = static_cast<int32_t>(nodes_.size()) - 1;
      ++nodes_.back().columns;
      nodes_.back().bordered = tree_.count[k] - 1;
    }
    for (int32_t k = 0; k < n; ++k) {
      const int32_t p = tree_.parent[k];
      if (p != -1 && node_of_[p] != node_of_[k]) nodes_[node_of_[k]].parent = node_of_[p];
    }
    children_.resize(nodes_.size());
    for (size_t s = 0; s < nodes_.size(); ++s) {
      if (nodes_[s].parent != -1) children_[nodes_[s].parent].push_back(static_cast<int32_t>(s));
    }
  }

  // From the leaves up, children of the largest border first: those bring the fewest zeros.
  void Merge() {
    for (size_t s = 0; s < nodes_.size(); ++s) {
      Supernode& node = nodes_[s];
      std::vector<int32_t> children = std::move(children_[s]);
      std::vector<int32_t> kept;
      std::stable_sort(children.begin(), children.end(), [this](int32_t a, int32_t b) {
        return nodes_[a].bordered > nodes_[b].bordered;
      });
      for (const int32_t c : children) {
        Supernode& child = nodes_[c];
        const double zeros =
            node.zeros + child.zeros +
            static_cast<double>(child.columns) * (node.columns + node.bordered - child.bordered);
        const int64_t columns = int64_t{node.columns} + child.columns;
        if (MayHaveZeros(columns, zeros / Entries(static_cast<double>(columns), node.bordered))) {
          child.into = static_cast<int32_t>(s);
          node.columns = static_cast<int32_t>(columns);
          node.zeros = zeros;
          for (const int32_t g : children_[c]) {
            nodes_[g].parent = static_cast<int32_t>(s);
            kept.push_back(g);
          }
          children_[c] = {};
        } else {
          kept.push_back(c);
        }
      }
      children_[s] = std::move(kept);
    }
  }

  // The node that s was merged into, at last.
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

  // Liu: those whose subtrees need most beyond what they leave come first.
  void SortChildren() {
    std::vector<double> peak(nodes_.size());
    const auto left = [this](int32_t s) { return 1.0 * nodes_[s].bordered * nodes_[s].bordered; };
    for (size_t s = 0; s < nodes_.size(); ++s) {
      if (nodes_[s].into != -1) continue;
      std::vector<int32_t>& children = children_[s];
      std::sort(children.begin(), children.end(), [&](int32_t a, int32_t b) {
        const double of_a = peak[a] - left(a);
        const double of_b = peak[b] - left(b);
        return of_a != of_b ? of_a > of_b : a < b;
      });
      double waiting = 0;
      for (const int32_t c : children) {
        peak[s] = std::max(peak[s], waiting + peak[c]);
        waiting += left(c);
      }
      peak[s] = std::max(peak[s], waiting + left(static_cast<int32_t>(s)));
    }
  }

  std::vector<int32_t> PostorderOfKept() const {
    std::vector<int32_t> post, stack;
    std::vector<size_t> next(nodes_.size());
    for (size_t s = 0; s < nodes_.size(); ++s) {
      if (nodes_[s].into != -1 || nodes_[s].parent != -1) continue;
      stack.push_back(static_cast<int32_t>(s));
      while (!stack.empty()) {
        const int32_t top = stack.back();
        if (next[top] < children_[top].size()) {
          stack.push_back(children_[top][next[top]++]);
        } else {
          post.push_back(top);
          stack.pop_back();
        }
      }
    }
    return post;
  }

  const EliminationTree& tree_;
  std::vector<Supernode> nodes_;
  std::vector<int32_t> node_of_;  // of positions
  std::vector<std::vector<int32_t>> children_;
};

}  // namespace

FrontTree MakeFrontTree(const EliminationTree& tree) { return Merger(tree).Make(); }

}  // namespace crout
