// SPDX-License-Identifier: Apache-2.0

// Tests that the daemon frees all resources of a client (croutctl) that is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <functional>
#include <string>
#include <vector>

#include "tests/e2e/harness/daemon.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::lost_client_test {
namespace {

std::vector<double> Identity(int64_t n) {
  std::vector<double> a(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i * (n + 1))] = 1;
  return a;
}

class LostClientTest : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteFile(matrix_, "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 1\n2 2 1\n");
    handle_ = Factor(2);
  }

  // Factors the identity of order n. Returns the handle.
  std::string Factor(int64_t n) {
    const std::vector<double> a = Identity(n);
    const auto factor = client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), n, n), {}, {});
    EXPECT_THAT(factor, crout::testing::IsOk());
    daemon_.AwaitRest();
    return factor->handle;
  }

  static void Kill(Process& process) {
    process.Signal(SIGKILL);
    EXPECT_EQ(process.Wait(), 128 + SIGKILL);
  }
  void ExpectSoon(const Holdings& expected) {
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_) == expected; }))
        << expected << " became " << HoldingsOf(*client_);
  }

  // Kills croutctl when `reached` returns true for the resources that the daemon holds. Expects
  // that the daemon then holds the resources of before.
  void KillWhen(const std::vector<std::string>& arguments,
                const std::function<bool(const Holdings&)>& reached,
                const std::string& stdin_path = "") {
    const Holdings before = HoldingsOf(*client_);
    Process process(daemon_.CtlCommand(arguments), stdin_path);
    EXPECT_TRUE(Eventually([&] { return reached(HoldingsOf(*client_)); })) << process.Errors();
    Kill(process);
    ExpectSoon(before);
  }

  // Kills croutctl when its job is held at the failpoint `place`.
  void KillAt(const std::string& place, const std::vector<std::string>& arguments) {
    const Holdings before = HoldingsOf(*client_);
    const double refused = Refused();
    const int reached = failpoints().reached(place);
    failpoints().Hold(place);
    Process process(daemon_.CtlCommand(arguments));
    failpoints().AwaitReached(place, reached + 1);
    Kill(process);
    EXPECT_TRUE(Eventually([&] { return Refused() > refused; }));
    failpoints().Release(place);
    ExpectSoon(before);
  }

  const RemoteFailpoints& failpoints() const { return daemon_.failpoints(); }
  // Returns the number of calls that the daemon has ended with an error.
  double Refused() const { return CallsRefused(daemon_.ScrapeMetrics()); }

  // Batching is off, because the failpoints are in single jobs.
  Daemon daemon_{{"--streams=1", "--batching=off"}, "croutd_test"};
  const std::unique_ptr<Client> client_ = daemon_.NewClient();
  TempDir directory_;
  const std::string matrix_ = directory_.File("a.mtx");
  const std::string pipe_ = directory_.File("x_L.mtx");
  std::string handle_;
};

TEST_F(LostClientTest, WhileItsJobsRun) {
  KillAt("factorize.factor", {"factor", matrix_});
  KillAt("factorize.factor", {"refactor", handle_, matrix_});
  KillAt("factorize.factor", {"lu", matrix_, "--ones"});
  KillAt("solve.run", {"solve", handle_, "--ones"});
}

TEST_F(LostClientTest, WhileItsJobWaits) {
  const Holdings before = HoldingsOf(*client_);
  const double refused = Refused();
  failpoints().Hold("scheduler.job");
  Process first(daemon_.CtlCommand({"factor", matrix_}));
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_).streams_busy == 1; }));
  Process second(daemon_.CtlCommand({"factor", matrix_}));
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_).queue_depth == 1; }));
  Kill(second);
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client_).queue_depth == 0; }));
  Kill(first);
  EXPECT_TRUE(Eventually([&] { return Refused() == refused + 2; }));
  failpoints().Release("scheduler.job");
  ExpectSoon(before);
}

TEST_F(LostClientTest, InTheMiddleOfAnUpload) {
  // croutctl reads from a pipe whose writer pauses.
  ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
  Process writer({"/bin/sh", "-c",
                  "exec > " + pipe_ +
                      "; printf '%%%%MatrixMarket matrix coordinate real general\n9 9 999999\n'"
                      "; yes '1 1 1' | head -c 2500000; exec sleep 600"});
  const int64_t before = HoldingsOf(*client_).host_bytes;
  KillWhen(
      {"factor", "-"}, [&](const Holdings& now) { return now.host_bytes > before; }, pipe_);
}

TEST_F(LostClientTest, InTheMiddleOfADownload) {
  // croutctl writes to a pipe that is no longer read. It therefore receives no more of the 32 MB
  // than fits in the flow control windows.
  ASSERT_EQ(mkfifo(pipe_.c_str(), 0600), 0);
  Process reader(
      {"/bin/sh", "-c", "exec < " + pipe_ + "; head -c 100 > /dev/null; exec sleep 600"});
  const std::string handle = Factor(2000);
  const int64_t before = HoldingsOf(*client_).host_bytes;
  KillWhen({"download", handle, "-o", directory_.File("x")},
           [&](const Holdings& now) { return now.host_bytes > before; });
}

}  // namespace
}  // namespace crout::e2e::lost_client_test
