// SPDX-License-Identifier: Apache-2.0

// Named places where a test can hold a thread, inject an error or corrupt copied bytes.
#ifndef CROUT_KERNELS_UTIL_FAILPOINT_H_
#define CROUT_KERNELS_UTIL_FAILPOINT_H_

#include <atomic>
#include <cstddef>
#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace crout {

// Handles failpoints. Only tests and the tests' daemon link an implementation.
class FailpointHandler {
 public:
  virtual ~FailpointHandler() = default;

  // Called by any thread that reaches `name`, possibly concurrently. May block. May modify `bytes`,
  // which can be empty. The returned status becomes the result of the failpoint.
  virtual absl::Status Reach(std::string_view name, std::span<std::byte> bytes) = 0;
};

// Null unless a test sets it. Must be set while no other thread runs, and must outlive all threads
// that reach failpoints.
inline std::atomic<FailpointHandler*> failpoint_handler = nullptr;

// Marks the place `name`, of the form "folder.place". `bytes` are the bytes just copied there, if
// any. Without a handler, returns OK at the cost of a load and a branch.
inline absl::Status Failpoint(std::string_view name, std::span<std::byte> bytes = {}) {
  FailpointHandler* const handler = failpoint_handler.load(std::memory_order_acquire);
  return handler == nullptr ? absl::OkStatus() : handler->Reach(name, bytes);
}

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_FAILPOINT_H_
