// Orderings in a process of their own, crout-order, which can be killed: neither AMD nor METIS can
// be stopped, and METIS handles signals by longjmp, which a threaded process cannot have.
#ifndef CROUT_KERNELS_SPARSE_ORDERING_PROCESS_H_
#define CROUT_KERNELS_SPARSE_ORDERING_PROCESS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/graph.h"
#include "kernels/sparse/ordering_protocol.h"
#include "kernels/stop_requested.h"

namespace crout {

// The path of crout-order beside the running program, or in libexec/crout below the folders above
// it, as the install tree and the build tree have it; empty where there is none. Looked for once.
const std::string& OrderingProgram();

// One ordering of one graph. The process ends at the latest when this is destroyed. Move-only.
class OrderingProcess {
 public:
  // Starts `program` and sends the graph, which is not referred to afterwards: several processes
  // may work side by side. FAILED_PRECONDITION where there is no such program; RESOURCE_EXHAUSTED
  // where the system starts no process, the program fails, or the graph is beyond its indices;
  // CANCELLED by `stop`.
  static absl::StatusOr<OrderingProcess> Start(const std::string& program, OrderingMethod method,
                                               const Graph& graph, StopRequested stop);
  OrderingProcess(OrderingProcess&&) noexcept;
  OrderingProcess& operator=(OrderingProcess&&) noexcept;
  ~OrderingProcess();

  // Once: order[k] is the vertex that is eliminated as number k. RESOURCE_EXHAUSTED where the
  // program fails, for which it has no reason but memory; INTERNAL where the answer is no order;
  // CANCELLED by `stop`.
  absl::StatusOr<std::vector<int32_t>> Await(StopRequested stop);

 private:
  class Child;
  OrderingProcess(std::unique_ptr<Child> child, int64_t vertices);

  std::unique_ptr<Child> child_;
  int64_t vertices_;
};

// Both in one.
absl::StatusOr<std::vector<int32_t>> OrderInProcess(const std::string& program,
                                                    OrderingMethod method, const Graph& graph,
                                                    StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ORDERING_PROCESS_H_
