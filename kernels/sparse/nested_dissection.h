// Nested dissection by METIS, in a process of its own: its ordering handles signals by longjmp,
// which a threaded process cannot have.
#ifndef CROUT_KERNELS_SPARSE_NESTED_DISSECTION_H_
#define CROUT_KERNELS_SPARSE_NESTED_DISSECTION_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/sparse/graph.h"
#include "kernels/stop_requested.h"

namespace crout {

// The path of crout-order beside the running program, or in libexec/crout below the folders above
// it, as the install tree and the build tree have it; empty where there is none. Looked for once.
const std::string& OrderingProgram();

// Runs `program`. order[k] is the vertex that is eliminated as number k. UNAVAILABLE where the
// program does not start, fails or answers something else; RESOURCE_EXHAUSTED where the graph is
// beyond its 32-bit indices; CANCELLED by `stop`, with the program ended.
absl::StatusOr<std::vector<int32_t>> OrderByNestedDissection(const std::string& program,
                                                             const Graph& graph,
                                                             StopRequested stop);

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_NESTED_DISSECTION_H_
