// Failpoints of another process, by way of a Unix socket: croutd_test serves it, tests talk to it.
//
// A connection carries one command, a line, and its answer, "ok" or what was wrong with it:
//   hold NAME | release NAME | fail NAME CODE TIMES MESSAGE | flip NAME BIT | await NAME COUNT |
//   reached NAME (answers with the count) | advance NANOSECONDS
#ifndef CROUT_TESTS_E2E_FAILPOINT_CHANNEL_H_
#define CROUT_TESTS_E2E_FAILPOINT_CHANNEL_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/support/failpoints.h"

namespace crout::e2e {

// Listens on `path` and answers until the process ends; each command has a thread, so that one may
// wait while others come. Exits the process if it cannot listen.
void ServeFailpoints(const std::string& path, testing::Failpoints& failpoints);

// The same methods as Failpoints, which see. A test failure if the daemon does not answer.
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
  std::string Ask(const std::string& line) const;
  void Command(const std::string& line) const;

  std::string path_;
};

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_FAILPOINT_CHANNEL_H_
