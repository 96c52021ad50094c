// SPDX-License-Identifier: Apache-2.0

// Failpoints of another process over a Unix socket. croutd_test is the server, tests are the
// clients.
//
// A connection carries one command, a line, and one reply, "ok" or an error message:
//   hold NAME | release NAME | fail NAME CODE TIMES MESSAGE | flip NAME BIT | await NAME COUNT |
//   reached NAME (replies with the count) | advance NANOSECONDS
#ifndef CROUT_TESTS_E2E_FAILPOINT_CHANNEL_H_
#define CROUT_TESTS_E2E_FAILPOINT_CHANNEL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/support/failpoints.h"

namespace crout::e2e {

// Listens on `path` and answers until the process ends. Each command runs in its own thread, so
// that one can wait while others run. Exits the process if it cannot listen.
void ServeFailpoints(const std::string& path, testing::Failpoints& failpoints);

// Has the same methods as Failpoints. Fails the test if the daemon does not answer.
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

#endif  // CROUT_TESTS_E2E_FAILPOINT_CHANNEL_H_
