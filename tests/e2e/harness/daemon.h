// SPDX-License-Identifier: Apache-2.0

// A croutd for a single test, on ports that the system chooses.
#ifndef CROUT_TESTS_E2E_HARNESS_DAEMON_H_
#define CROUT_TESTS_E2E_HARNESS_DAEMON_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "crout/client.h"
#include "crout/v1/factorization_service.grpc.pb.h"
#include "tests/e2e/harness/failpoint_channel.h"
#include "tests/e2e/harness/process.h"
#include "tests/support/timing/eventually.h"

namespace crout::e2e {

using crout::testing::Eventually;
using crout::testing::kTestTimeout;
using crout::testing::SeenWithin;

class Daemon {
 public:
  // Starts croutd on the host device with additional `flags`, and waits for its ready line. Fails
  // the test, with the log of the daemon, if the line does not appear. The drain grace is zero
  // unless `flags` set it. `program` is croutd, or croutd_test for failpoints. The log is written
  // to `stderr_path` if given; otherwise process().Errors() returns it. The destructor kills the
  // daemon.
  explicit Daemon(const std::vector<std::string>& flags = {}, const std::string& program = "croutd",
                  const std::string& stderr_path = "");

  const std::string& address() const { return addresses_[0]; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& metrics_address() const { return metrics_address_; }
  Process& process() { return *process_; }
  // The failpoints of croutd_test.
  const RemoteFailpoints& failpoints() const { return failpoints_; }

  // Returns a client without retries, so that tests get the first status.
  std::unique_ptr<Client> NewClient(const std::string& tenant = "") const;
  // Return a new connection, and a stub on a new connection, for calls without the client library.
  // On each stream the server can send only 64 KiB ahead of the reader.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::FactorizationService::Stub> NewStub() const;

  // Waits until no call is in flight and no worker is busy, because a client gets a reply slightly
  // before its call has freed all resources. Fails the test after kTestTimeout.
  void AwaitRest() const;
  // Waits until the log of the daemon contains all `texts`; a separate thread writes it with a
  // delay. Returns false after kTestTimeout.
  bool Logs(const std::vector<std::string>& texts) const;

  // Returns the reply of the metrics port to GET `path`, including its header. ScrapeMetrics()
  // requests /metrics.
  std::string Get(const std::string& path) const;
  std::string ScrapeMetrics() const;

  // Runs croutctl with the address of the daemon, to its end.
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

// The resources that are held according to the daemon, in bytes or as numbers. They must be equal
// before and after a call. The resources of an answered call may count until Daemon::AwaitRest()
// returns.
struct Holdings {
  int64_t device_bytes = 0;
  int64_t host_bytes = 0;
  int64_t streams_busy = 0;
  int64_t queue_depth = 0;
  int64_t cached_factors = 0;

  friend bool operator==(const Holdings&, const Holdings&) = default;
};
std::ostream& operator<<(std::ostream& out, const Holdings& holdings);
Holdings HoldingsIn(const ServerInfo& info);
Holdings HoldingsOf(Client& client);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_DAEMON_H_
