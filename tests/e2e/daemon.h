// A croutd of a test's own, on ports that the system picks.
#ifndef CROUT_TESTS_E2E_DAEMON_H_
#define CROUT_TESTS_E2E_DAEMON_H_

#include <grpcpp/channel.h>

#include <memory>
#include <string>
#include <vector>

#include "crout/client.h"
#include "tests/e2e/failpoint_channel.h"
#include "tests/e2e/process.h"
#include "tests/support/patience.h"

namespace crout::e2e {

using crout::testing::Eventually;
using crout::testing::kPatience;
using crout::testing::SeenWithin;

class Daemon {
 public:
  // Starts croutd on the host device with `flags` besides, and waits for its ready line; a test
  // failure if none comes, with the daemon's log. No drain grace unless `flags` give one.
  // `program`: croutd, or croutd_test, which has failpoints.
  // `stderr_path`: where its log goes, if not to process().Errors().
  explicit Daemon(const std::vector<std::string>& flags = {}, const std::string& program = "croutd",
                  const std::string& stderr_path = "");

  const std::string& address() const { return addresses_[0]; }
  const std::vector<std::string>& addresses() const { return addresses_; }
  const std::string& metrics_address() const { return metrics_address_; }
  Process& process() { return *process_; }
  // Of croutd_test.
  const RemoteFailpoints& failpoints() const { return failpoints_; }

  // Clients that do not try again, so that tests see the first status.
  std::unique_ptr<client::Client> NewClient(const std::string& tenant = "") const;
  // A connection of its own, for calls below the client library. On each of its streams the server
  // may send 64 KiB ahead of what is read.
  std::shared_ptr<grpc::Channel> NewChannel() const;
  std::unique_ptr<v1::FactorizationService::Stub> NewStub() const;

  // Waits until no call is in flight and no worker busy: a reply leaves a little before its call
  // has given back what it held. A test failure if a call stays open.
  void AwaitRest() const;
  // Waits until the daemon's log, which a thread writes after what it tells of, has each of
  // `texts`; whether it does.
  bool Logs(const std::vector<std::string>& texts) const;

  // The reply of the metrics port to GET of `path`, with its header; of /metrics.
  std::string Get(const std::string& path) const;
  std::string ScrapeMetrics() const;

  // Runs croutctl against the daemon.
  Finished Ctl(std::vector<std::string> arguments, const std::string& stdin_path = "") const;
  // The command line of that.
  std::vector<std::string> CtlCommand(std::vector<std::string> arguments) const;

 private:
  TempDir directory_;
  const RemoteFailpoints failpoints_{directory_.File("failpoints")};
  std::unique_ptr<Process> process_;
  std::vector<std::string> addresses_ = {""};
  std::string metrics_address_;
};

// What the server says it holds; calls must leave it as it was. What calls that were answered hold
// counts until Daemon::AwaitRest() returns.
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
