// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/front_tree.h"

#include <utility>

#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

std::vector<int32_t> Inverse(const std::vector<int32_t>& order) {
  std::vector<int32_t> position(order.size());
  for (size_t k = 0; k < order.size(); ++k) position[order[k]] = static_cast<int32_t>(k);
  return position;
}

// Liu's algorithm with path compression: climbs from each earlier neighbor to its current root.
// Incomplete if the counter stops.
std::vector<int32_t> Parents(const Graph& graph, const std::vector<int32_t>& order,
                             const std::vector<int32_t>& position, StopCounter& counter) {
  const auto n = static_cast<int32_t>(order.size());
  std::vector<int32_t> parent(n, -1), ancestor(n, -1);
  for (int32_t k = 0; k < n; ++k) {
    const int32_t v = order[k];
    for (int64_t e = graph.start[v]; e < graph.start[v + 1]; ++e) {
      int32_t i = position[graph.neighbour[e]];
      if (counter.Stops()) return parent;
      while (i != -1 && i < k) {
        const int32_t next = std::exchange(ancestor[i], k);
        if (next == -1) parent[i] = k;
        i = next;
        counter.Count();
      }
    }
  }
  return parent;
}

// Returns the positions in postorder; children in ascending order.
std::vector<int32_t> Postorder(const std::vector<int32_t>& parent) {
  const auto n = static_cast<int32_t>(parent.size());
  std::vector<int32_t> first_child(n + 1, -1), sibling(n, -1);
  for (int32_t k = n - 1; k >= 0; --k) {
    const int32_t p = parent[k] == -1 ? n : parent[k];  // n: above the roots
    sibling[k] = std::exchange(first_child[p], k);
  }
  std::vector<int32_t> post, stack;
  post.reserve(n);
  for (int32_t root = first_child[n]; root != -1; root = sibling[root]) {
    stack.push_back(root);
    while (!stack.empty()) {
      const int32_t k = stack.back();
      const int32_t child = first_child[k];
      if (child == -1) {
        post.push_back(k);
        stack.pop_back();
      } else {
        first_child[k] = sibling[child];
        stack.push_back(child);
      }
    }
  }
  return post;
}

// Column counts by the algorithm of Gilbert, Ng and Peyton, for a tree numbered in postorder. Uses
// the leaves of each row's subtree and the least common ancestors of successive leaves. Incomplete
// if the counter stops.
std::vector<int32_t> Counts(const Graph& graph, const std::vector<int32_t>& order,
                            const std::vector<int32_t>& parent, StopCounter& counter) {
  const auto n = static_cast<int32_t>(order.size());
  const std::vector<int32_t> position = Inverse(order);
  std::vector<int32_t> count(n), first(n, -1), max_first(n, -1), previous_leaf(n, -1), ancestor(n);
  for (int32_t k = 0; k < n; ++k) {
    count[k] = first[k] == -1 ? 1 : 0;
    for (int32_t j = k; j != -1 && first[j] == -1; j = parent[j]) first[j] = k;
    ancestor[k] = k;
  }
  for (int32_t j = 0; j < n; ++j) {
    if (parent[j] != -1) --count[parent[j]];
    const int32_t v = order[j];
    for (int64_t e = graph.start[v]; e < graph.start[v + 1]; ++e) {
      const int32_t i = position[graph.neighbour[e]];
      if (counter.Stops()) return count;
      if (i <= j || first[j] <= max_first[i]) continue;
      max_first[i] = first[j];
      ++count[j];
      const int32_t leaf = std::exchange(previous_leaf[i], j);
      if (leaf == -1) continue;
      int32_t common = leaf;
      for (; common != ancestor[common]; counter.Count()) common = ancestor[common];
      for (int32_t k = leaf; k != common;) k = std::exchange(ancestor[k], common);
      --count[common];
    }
    if (parent[j] != -1) ancestor[j] = parent[j];
  }
  for (int32_t j = 0; j < n; ++j) {
    if (parent[j] != -1) count[parent[j]] += count[j];
  }
  return count;
}

}  // namespace

double EliminationTree::Flops() const {
  double flops = 0;
  for (const int32_t c : count) flops += (2.0 * (c - 1) + 1) * (c - 1);
  return flops;
}

absl::StatusOr<EliminationTree> MakeEliminationTree(const Graph& graph,
                                                    const std::vector<int32_t>& order,
                                                    StopRequested stop) {
  StopCounter counter(stop);
  const std::vector<int32_t> parent = Parents(graph, order, Inverse(order), counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  const std::vector<int32_t> post = Postorder(parent);
  const std::vector<int32_t> renumbered = Inverse(post);
  EliminationTree tree;
  tree.order.resize(order.size());
  tree.parent.resize(order.size());
  for (size_t k = 0; k < post.size(); ++k) {
    tree.order[k] = order[post[k]];
    const int32_t p = parent[post[k]];
    tree.parent[k] = p == -1 ? -1 : renumbered[p];
  }
  tree.count = Counts(graph, tree.order, tree.parent, counter);
  CROUT_RETURN_IF_ERROR(counter.status());
  return tree;
}

}  // namespace crout
