// SPDX-License-Identifier: Apache-2.0

// Tests the log of a real daemon: its content, and readers that are slow or have disconnected.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "tests/e2e/harness/daemon.h"

namespace crout::e2e::log_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// A FIFO with a small buffer. The test holds its read end.
class Fifo {
 public:
  Fifo() {
    EXPECT_EQ(mkfifo(path().c_str(), 0600), 0);
    fd_ = open(path().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    EXPECT_GT(fcntl(fd_, F_SETPIPE_SZ, 4096), 0);
  }
  ~Fifo() { CloseReader(); }
  Fifo(const Fifo&) = delete;  // owns descriptors
  Fifo& operator=(const Fifo&) = delete;

  std::string path() const { return directory_.File("stderr"); }
  void CloseReader() {
    if (fd_ >= 0) close(fd_);
    fd_ = -1;
  }

 private:
  TempDir directory_;
  int fd_;
};

double Dropped(const Daemon& daemon) {
  constexpr char kSeries[] = "\ncrout_log_dropped_total ";
  const std::string metrics = daemon.ScrapeMetrics();
  const size_t at = metrics.find(kSeries);
  double value = -1;
  if (at == std::string::npos) return value;
  const std::string rest = metrics.substr(at + sizeof kSeries - 1);
  EXPECT_TRUE(absl::SimpleAtod(rest.substr(0, rest.find('\n')), &value));
  return value;
}

// Makes calls until log lines are dropped. The lines have the maximum length.
void FillTheLog(const Daemon& daemon) {
  const auto client = daemon.NewClient(std::string(64, 't'));
  do {
    for (int i = 0; i < 200; ++i) {
      ASSERT_EQ(client->Describe(std::string(26, 'a')).status().code(),
                absl::StatusCode::kNotFound);
    }
  } while (Dropped(daemon) == 0);
  EXPECT_GT(Dropped(daemon), 0);
}

TEST(LogTest, ItsReaderDoesNotRead) {
  const Fifo fifo;
  Daemon daemon({"--log-calls=all"}, "croutd", fifo.path());
  FillTheLog(daemon);
  // The thread that writes the log remains blocked, but the daemon serves calls.
  ASSERT_TRUE(daemon.NewClient()->ServerInfo().ok());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

TEST(LogTest, ItsReaderIsGone) {
  Fifo fifo;
  Daemon daemon({"--log-calls=all"}, "croutd", fifo.path());
  fifo.CloseReader();
  const auto client = daemon.NewClient();
  EXPECT_TRUE(Eventually([&] { return client->ServerInfo().ok() && Dropped(daemon) > 0; }));
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
}

// protobuf would log an error for the following text, which is not UTF-8.
TEST(LogTest, LibrariesDoNotWriteToStandardError) {
  for (const bool gone : {true, false}) {
    Fifo fifo;
    Daemon daemon({"--log-calls=none"}, "croutd", fifo.path());
    if (gone) fifo.CloseReader();
    const auto client = daemon.NewClient();
    for (int i = 0; i < 100; ++i) {  // more than fits in the FIFO
      ASSERT_EQ(client->Describe("\xff\xfe").status().code(), absl::StatusCode::kInvalidArgument);
    }
    daemon.process().Signal(SIGTERM);
    EXPECT_EQ(daemon.process().Wait(), 0);
  }
}

TEST(LogTest, LogsTheSettingsAndTheCalls) {
  Daemon daemon({"--devices=auto", "--max-n=777"});
  const auto client = daemon.NewClient("alice");
  const std::vector<double> a = {4, 1, 1, 3};
  const auto factor = client->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, {});
  ASSERT_TRUE(factor.ok()) << factor.status();
  EXPECT_FALSE(client->Describe("nonsense").ok());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
  const std::string log = daemon.process().Errors();
  EXPECT_THAT(log, HasSubstr(" info device_opened name="));
  const std::string start = log.substr(log.find(" info daemon_started version="));
  EXPECT_THAT(
      start.substr(0, start.find('\n')),
      AllOf(HasSubstr(" listen=\"" + daemon.address() + "\""),
            HasSubstr(" metrics=\"" + daemon.metrics_address() + "\""), HasSubstr(" tls=false "),
            HasSubstr(" devices=\"" + factor->device), HasSubstr(" max_n=777 "),
            HasSubstr(" host_budget_bytes="), HasSubstr(" slow_call_seconds=10")));
  if (factor->device == "host") {
    EXPECT_THAT(log, HasSubstr(" info gpu_not_found reason=\""));
  }
  EXPECT_THAT(
      log,
      AllOf(HasSubstr("method=\"Factorize\" code=\"OK\""), HasSubstr("tenant=\"alice\""),
            HasSubstr("handle_prefix=\"" + factor->handle.substr(0, 6) + "\""),
            HasSubstr(" algorithm=\""), HasSubstr(" n=2 "), HasSubstr(" received_bytes="),
            HasSubstr(" factor_seconds="),
            HasSubstr("method=\"DescribeFactor\" code=\"NOT_FOUND\" reason=\"HANDLE_UNKNOWN\"")));
  EXPECT_THAT(log, Not(HasSubstr(factor->handle))) << "a handle is a capability";
  EXPECT_THAT(log, HasSubstr(" info daemon_stopped"))
      << "the end is written before the process ends";
}

}  // namespace
}  // namespace crout::e2e::log_test
