// SPDX-License-Identifier: Apache-2.0

#include "kernels/sparse/minimum_degree.h"

#include <amd.h>

#include <algorithm>
#include <iterator>
#include <numeric>

namespace crout {
namespace {

// Elements of AMD's lists: 1.2 times the neighbors, and one per vertex.
int64_t ListElements(int64_t n, int64_t neighbours) { return neighbours + neighbours / 5 + n; }

// `Index` is the index type of `call`, one of AMD's two versions. amd_order() is not used: it would
// check, count and copy a graph that is already symmetric, sorted and without diagonal, and make
// two copies.
template <class Index, class Call>
std::vector<int32_t> Order(const Graph& graph, Call call) {
  const auto n = static_cast<Index>(graph.vertices());
  std::vector<Index> start(graph.start.begin(), graph.start.end() - 1), length(n);
  for (Index v = 0; v < n; ++v) length[v] = static_cast<Index>(graph.start[v + 1]) - start[v];
  std::vector<Index> lists(ListElements(graph.vertices(), graph.start.back()));
  std::copy(graph.neighbour.begin(), graph.neighbour.end(), lists.begin());
  std::vector<Index> nv(n), next(n), order(n), head(n), elements(n), degree(n), w(n);
  call(n, start.data(), lists.data(), length.data(), static_cast<Index>(lists.size()),
       static_cast<Index>(graph.start.back()), nv.data(), next.data(), order.data(), head.data(),
       elements.data(), degree.data(), w.data(), nullptr, nullptr);
  return {order.begin(), order.end()};
}

bool Fits32Bits(int64_t n, int64_t neighbours, int64_t most) {
  return n < most / 8 && neighbours < most;
}

}  // namespace

std::vector<int32_t> OrderByMinimumDegree(const Graph& graph, int64_t most) {
  if (graph.neighbour.empty()) {
    std::vector<int32_t> order(graph.vertices());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  return Fits32Bits(graph.vertices(), graph.start.back(), most)
             ? Order<int>(graph, amd_2)
             : Order<SuiteSparse_long>(graph, amd_l2);
}

std::optional<std::vector<int32_t>> OrderForest(const Graph& graph) {
  const int64_t n = graph.vertices();
  const int64_t edges = graph.start.back() / 2;
  if (edges >= std::max<int64_t>(n, 1)) return std::nullopt;
  std::vector<int32_t> degree(n);
  std::vector<int32_t> order;
  order.reserve(n);
  for (int64_t v = 0; v < n; ++v) {
    degree[v] = static_cast<int32_t>(graph.start[v + 1] - graph.start[v]);
    if (degree[v] <= 1) order.push_back(static_cast<int32_t>(v));
  }
  // `order` is also the queue of leaves. A vertex enters it when it has one neighbor left.
  for (size_t k = 0; k < order.size(); ++k) {
    for (const int32_t w : graph.neighbours(order[k])) {
      if (--degree[w] == 1) order.push_back(w);
    }
  }
  if (std::ssize(order) < n) return std::nullopt;
  return order;
}

size_t MinimumDegreeBytes(int64_t n, int64_t neighbours) {
  const bool short_index = Fits32Bits(n, neighbours, kMaxFor32Bits);
  const size_t index = short_index ? sizeof(int) : sizeof(SuiteSparse_long);
  return static_cast<size_t>(ListElements(n, neighbours)) * index;
}

size_t MinimumDegreeVertexBytes(int64_t n) {
  constexpr size_t kArrays = 9;  // arrays of Order()
  return static_cast<size_t>(n) * (kArrays * sizeof(SuiteSparse_long) + sizeof(int32_t));
}

}  // namespace crout
