// SPDX-License-Identifier: Apache-2.0

// A croutd for a single test, on ports that the system picks.
#ifndef CROUT_TESTS_E2E_DAEMON_H_
#define CROUT_TESTS_E2E_DAEMON_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "crout/client.h"
#include "tests/e2e/failpoint_channel.h"
#include "tests/e2e/process.h"
#include "tests/support/eventually.h"

namespace crout::e2e {

using crout::testing::Eventually;
using crout::testing::kTestTimeout;
using crout::testing::SeenWithin;

class Daemon {
 public:
  // Starts croutd on the host device with additional `flags` and waits for its ready line. Fails
  // the test with the daemon's log if no such line appears. The drain grace is zero unless `flags`
  // set it. `program` is croutd, or croutd_test for failpoints. The log goes to `stderr_path`, or
  // by default to process().Errors().
  explicit Daemon(const std::vector<std::string>& flags = {}, const std::string& program = "croutd",
                  const std::string& stderr_path = "");

  const std::string& address() const { return addresses_[0]; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& metrics_address() const { return metrics_address_; }
  Process& process() { return *process_; }
  // Failpoints of croutd_test.
  const RemoteFailpoints& failpoints() const { return failpoints_; }

  // Makes a client without retries, so that tests see the first status.
  std::unique_ptr<client::Client> NewClient(const std::string& tenant = "") const;
  // Makes a separate connection for calls below the client library. On each stream the server may
  // send 64 KiB ahead of the reader.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::FactorizationService::Stub> NewStub() const;

  // Waits until no call is in flight and no worker is busy. A client sees the reply slightly before
  // its call has returned all that it held. Fails the test if a call stays open.
  void AwaitRest() const;
  // Waits until the daemon's log contains all `texts`, and returns whether it does. A separate
  // thread writes the log with a delay.
  bool Logs(const std::vector<std::string>& texts) const;

  // Returns the metrics port's reply to GET `path`, including its header. ScrapeMetrics() gets
  // /metrics.
  std::string Get(const std::string& path) const;
  std::string ScrapeMetrics() const;

  // Runs croutctl against the daemon.
  Finished Ctl(std::vector<std::string> arguments, const std::string& stdin_path = "") const;
  // Returns the command line for Ctl().
  std::vector<std::string> CtlCommand(std::vector<std::string> arguments) const;

 private:
  TempDir directory_;
  const RemoteFailpoints failpoints_{directory_.File("failpoints")};
  std::unique_ptr<Process> process_;
  std::vector<std::string> addresses_ = {""};
  std::string metrics_address_;
};

// Resources held according to the server. Calls must leave them unchanged. Resources of answered
// calls may count until Daemon::AwaitRest() returns.
struct Holdings {
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
  int64_t streams_busy = 0;
  int64_t queue_depth = 0;
  int64_t cached_factors = 0;

  friend bool operator==(const Holdings&, const Holdings&) = default;
};
std::ostream& operator<<(std::ostream& out, const Holdings& holdings);
Holdings HoldingsIn(const v1::GetServerInfoResponse& info);
Holdings HoldingsOf(client::Client& client);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_DAEMON_H_
