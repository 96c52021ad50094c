// SPDX-License-Identifier: Apache-2.0

// Controls the failpoints of another process over a Unix socket. croutd_test is the server; tests
// are clients.
//
// A connection transfers one command, which is a line, and one reply, which is "ok" or an error
// message. The commands are:
//   hold NAME | release NAME | fail NAME CODE TIMES MESSAGE | flip NAME BIT | await NAME COUNT |
//   reached NAME (replies with the count) | advance NANOSECONDS
#ifndef CROUT_TESTS_E2E_HARNESS_FAILPOINT_CHANNEL_H_
#define CROUT_TESTS_E2E_HARNESS_FAILPOINT_CHANNEL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/support/timing/failpoints.h"

namespace crout::e2e {

// Starts to listen on `path`, and executes commands until the process ends. Each command runs on a
// separate thread, so that others can run while it waits. Exits the process if it cannot listen.
void ServeFailpoints(const std::string& path, testing::Failpoints& failpoints);

// The functions are those of Failpoints, except Do. They fail the test if the daemon does not
// answer or reports an error.
class RemoteFailpoints {
 public:
  explicit RemoteFailpoints(std::string path) : path_(std::move(path)) {}

  void Hold(std::string_view name) const;
  void Release(std::string_view name) const;
  void Fail(std::string_view name, const absl::Status& status,
            int times = testing::Failpoints::kAlways) const;
  void FlipBit(std::string_view name, size_t bit) const;
  void AwaitReached(std::string_view name, int count = 1) const;
  int reached(std::string_view name) const;
  void Advance(absl::Duration duration) const;

 private:
  std::string Query(const std::string& line) const;
  void Command(const std::string& line) const;

  std::string path_;
};

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_FAILPOINT_CHANNEL_H_
