// Named places where a test can interfere: hold a thread, fail an operation, flip a bit of a copy.
#ifndef CROUT_KERNELS_UTIL_FAILPOINT_H_
#define CROUT_KERNELS_UTIL_FAILPOINT_H_

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace crout {

// What happens at failpoints. Only tests and the tests' daemon link an implementation.
class FailpointHandler {
 public:
  virtual ~FailpointHandler() = default;

  // Called by any thread that reaches `name`, at once with others; may block. The status is the
  // failpoint's; `bytes`, which may be empty, may be changed.
  virtual absl::Status Reach(std::string_view name, std::span<std::byte> bytes) = 0;
};

// Null in every program that does not set it. Set while no other thread runs; outlives the threads
// that reach failpoints.
inline std::atomic<FailpointHandler*> failpoint_handler = nullptr;

// Marks the place `name`, "folder.place"; `bytes` are those that were just copied there, if any.
// Without a handler: OK, for the price of a load and a branch.
inline absl::Status Failpoint(std::string_view name, std::span<std::byte> bytes = {}) {
  FailpointHandler* const handler = failpoint_handler.load(std::memory_order_acquire);
  return handler == nullptr ? absl::OkStatus() : handler->Reach(name, bytes);
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_FAILPOINT_H_
