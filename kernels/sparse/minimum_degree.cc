#include "kernels/sparse/minimum_degree.h"

#include <amd.h>

#include <new>
#include <numeric>
#include <stdexcept>

namespace crout {
namespace {

// Index is that of `call`, one of AMD's two versions.
template <class Index, class Call>
std::vector<int32_t> Order(const Graph& graph, Call call) {
  const auto n = static_cast<Index>(graph.vertices());
  const std::vector<Index> start(graph.start.begin(), graph.start.end());
  const std::vector<Index> neighbour(graph.neighbour.begin(), graph.neighbour.end());
  std::vector<Index> order(n);
  const int status =
      static_cast<int>(call(n, start.data(), neighbour.data(), order.data(), nullptr, nullptr));
  if (status == AMD_OUT_OF_MEMORY) throw std::bad_alloc();
  if (status != AMD_OK) throw std::logic_error("AMD refused a graph");
  return {order.begin(), order.end()};
}

}  // namespace

std::vector<int32_t> OrderByMinimumDegree(const Graph& graph, int64_t most) {
  const int64_t n = graph.vertices();
  if (graph.neighbour.empty()) {  // of which AMD wants an array all the same
    std::vector<int32_t> order(n);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  if (n < most / 8 && graph.start[n] < most) return Order<int>(graph, amd_order);
  return Order<SuiteSparse_long>(graph, amd_l_order);
}

}  // namespace crout
