#include "kernels/sparse/minimum_degree.h"

#include <amd.h>

#include <numeric>

namespace crout {
namespace {

// Elements of AMD's lists: a fifth more than it begins with, and one for each vertex.
int64_t ListElements(const Graph& graph) {
  const int64_t neighbours = graph.start.back();
  return neighbours + neighbours / 5 + graph.vertices();
}

// Index is that of `call`, one of AMD's two versions. Not amd_order, which checks, counts and
// copies what is known to be symmetric, ascending and without a diagonal: that makes two copies.
template <class Index, class Call>
std::vector<int32_t> Order(const Graph& graph, Call call) {
  const auto n = static_cast<Index>(graph.vertices());
  std::vector<Index> start(graph.start.begin(), graph.start.end() - 1), length(n);
  for (Index v = 0; v < n; ++v) length[v] = static_cast<Index>(graph.start[v + 1]) - start[v];
  std::vector<Index> lists(ListElements(graph));
  std::copy(graph.neighbour.begin(), graph.neighbour.end(), lists.begin());
  std::vector<Index> nv(n), next(n), order(n), head(n), elements(n), degree(n), w(n);
  call(n, start.data(), lists.data(), length.data(), static_cast<Index>(lists.size()),
       static_cast<Index>(graph.start.back()), nv.data(), next.data(), order.data(), head.data(),
       elements.data(), degree.data(), w.data(), nullptr, nullptr);
  return {order.begin(), order.end()};
}

bool Fits32Bits(const Graph& graph, int64_t most) {
  const int64_t n = graph.vertices();
  return n < most / 8 && graph.start[n] < most;
}

}  // namespace

std::vector<int32_t> OrderByMinimumDegree(const Graph& graph, int64_t most) {
  if (graph.neighbour.empty()) {
    std::vector<int32_t> order(graph.vertices());
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  return Fits32Bits(graph, most) ? Order<int>(graph, amd_2)
                                 : Order<SuiteSparse_long>(graph, amd_l2);
}

size_t MinimumDegreeBytes(const Graph& graph) {
  const size_t index = Fits32Bits(graph, kMostFor32Bits) ? sizeof(int) : sizeof(SuiteSparse_long);
  return static_cast<size_t>(ListElements(graph)) * index;
}

}  // namespace crout
