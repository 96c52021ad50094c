// SPDX-License-Identifier: Apache-2.0

// Orderings in a separate process, crout-order, which can be killed. Neither AMD nor METIS can be
// stopped, and METIS handles signals by longjmp, which is not safe in a threaded process.
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

// Path of crout-order: next to the running program, or in libexec/crout below a parent folder, as
// in an install or build tree. Empty if there is none. Looked up once.
const std::string& OrderingProgram();

// One ordering of one graph. The process ends no later than this object. Move-only.
class OrderingProcess {
 public:
  // Starts `program` and sends the graph, which is not referenced afterwards. Several processes may
  // run concurrently. FAILED_PRECONDITION: there is no such program. RESOURCE_EXHAUSTED: the system
  // cannot start a process, the program failed, or the graph exceeds its indices. CANCELLED: `stop`
  // returned true.
  static absl::StatusOr<OrderingProcess> Start(const std::string& program, OrderingMethod method,
                                               const Graph& graph, StopRequested stop);
  OrderingProcess(OrderingProcess&&) noexcept;
  OrderingProcess& operator=(OrderingProcess&&) noexcept;
  ~OrderingProcess();

  // Waits for the order; call it once. order[k] is the k-th eliminated vertex. RESOURCE_EXHAUSTED:
  // the program failed, which happens only for lack of memory. INTERNAL: the reply is not a
  // permutation. CANCELLED: `stop` returned true.
  absl::StatusOr<std::vector<int32_t>> Await(StopRequested stop);

 private:
  class Child;
  OrderingProcess(std::unique_ptr<Child> child, int64_t vertices);

  std::unique_ptr<Child> child_;
  int64_t vertices_;
};

// Starts a process and waits for its order.
absl::StatusOr<std::vector<int32_t>> OrderInProcess(const std::string& program,
                                                    OrderingMethod method, const Graph& graph,
                                                    StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ORDERING_PROCESS_H_
