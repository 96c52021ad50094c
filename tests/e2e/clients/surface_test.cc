// SPDX-License-Identifier: Apache-2.0

// Tests other interfaces of the daemon: health, reflection, metrics, addresses, flags.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/e2e/harness/health.h"
#include "tests/e2e/harness/raw_calls.h"

namespace crout::e2e::surface_test {
namespace {

std::string FactorSmall(Client& client) {
  const std::vector<double> a = {4, 1, 1, 3};
  const auto factor = client.Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, {});
  EXPECT_TRUE(factor.ok()) << factor.status();
  return factor.ok() ? factor->handle : "";
}

TEST(SurfaceTest, HealthOfTheServerAndOfTheService) {
  Daemon daemon;
  const auto channel = daemon.NewChannel();
  EXPECT_EQ(CheckHealth(channel, ""), Health::kServing);
  EXPECT_EQ(CheckHealth(channel, "crout.v1.FactorizationService"), Health::kServing);
  EXPECT_EQ(CheckHealth(channel, "no.such.Service"), Health::kUnknownService);
}

TEST(SurfaceTest, ReflectionListsTheService) {
  Daemon daemon;
  EXPECT_THAT(ListServices(daemon.NewChannel()),
              ::testing::HasSubstr("crout.v1.FactorizationService"));
}

TEST(SurfaceTest, MetricsStartAtZeroAndChangeWithLoad) {
  Daemon daemon;
  const std::string before = daemon.ScrapeMetrics();
  EXPECT_THAT(before, ::testing::HasSubstr("200 OK"));
  for (const char* series :
       {"crout_build_info", "crout_requests_total{", "code=\"RESOURCE_EXHAUSTED\"",
        "crout_phase_duration_seconds_bucket", "crout_queue_depth", "crout_cache_entries"}) {
    EXPECT_THAT(before, ::testing::HasSubstr(series));
  }
  const std::string ok = R"(crout_requests_total{code="OK",method="Factorize"})";
  EXPECT_THAT(before, ::testing::HasSubstr(ok + " 0\n"));
  const auto client = daemon.NewClient();
  const std::string handle = FactorSmall(*client);
  EXPECT_TRUE(
      Eventually([&] { return daemon.ScrapeMetrics().find(ok + " 1\n") != std::string::npos; }));
  EXPECT_THAT(daemon.ScrapeMetrics(), ::testing::Not(::testing::HasSubstr(handle)));
}

// Series with label values that are not used are not exported, so that the scrape of an idle daemon
// is small.
TEST(SurfaceTest, IdleDaemonExportsFewSeries) {
  Daemon daemon;
  const std::string metrics = daemon.ScrapeMetrics();
  const std::vector<std::string> lines =
      absl::StrSplit(metrics.substr(metrics.find("\r\n\r\n") + 4), '\n', absl::SkipEmpty());
  const auto series = std::count_if(lines.begin(), lines.end(),
                                    [](const std::string& line) { return line[0] != '#'; });
  EXPECT_GT(series, 100);
  EXPECT_LT(series, 600);
  EXPECT_LT(metrics.size(), size_t{64} << 10);
  EXPECT_THAT(metrics, ::testing::HasSubstr("cuda=\"none\"")) << "the host serves";
}

TEST(SurfaceTest, ServesOnUnixSocketAndSeveralAddresses) {
  TempDir directory;
  const std::string socket = "unix:" + directory.File("crout.sock");
  Daemon daemon({"--listen=" + socket + ",127.0.0.1:0"});
  ASSERT_EQ(daemon.addresses().size(), 2u);
  EXPECT_EQ(daemon.addresses()[0], socket);
  std::set<std::string> handles;
  for (const std::string& address : daemon.addresses()) {
    ClientOptions options;
    options.server = address;
    handles.insert(FactorSmall(**Client::Connect(options)));
  }
  EXPECT_EQ(handles.size(), 2u);
  EXPECT_EQ(HoldingsOf(*daemon.NewClient()).cached_factors, 2);
}

TEST(SurfaceTest, LogsAreJsonWithoutPayload) {
  Daemon daemon({"--log-format=json", "--log-level=debug"});
  const auto client = daemon.NewClient();
  CallOptions call;
  call.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const std::vector<double> a = {12345.6789};
  ASSERT_TRUE(client->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 1, 1), {}, {}, call).ok());
  daemon.process().Signal(SIGTERM);
  EXPECT_EQ(daemon.process().Wait(), 0);
  const std::string log = daemon.process().Errors();
  EXPECT_THAT(log, ::testing::HasSubstr("0af7651916cd43dd8448eb211c80319c"));
  EXPECT_THAT(log, ::testing::Not(::testing::HasSubstr("12345.67")));
  EXPECT_EQ(log.front(), '{');
}

// The stack size in the environment is too small for the thread-local memory of libraries. The
// matrix is so large that several threads are used.
TEST(SurfaceTest, SmallOpenMpStacksDoNotEndTheDaemon) {
  setenv("OMP_STACKSIZE", "16k", 1);
  Daemon daemon;
  unsetenv("OMP_STACKSIZE");
  constexpr int64_t n = 1100;
  const std::string bytes = DominantBytes(n);
  const auto* values = reinterpret_cast<const double*>(bytes.data());
  const auto factor = daemon.NewClient()->Factor(
      MatrixSource::Dense(absl::MakeConstSpan(values, n * n), n, n), {}, {});
  EXPECT_TRUE(factor.ok()) << factor.status() << daemon.process().Errors();
}

TEST(SurfaceTest, DaemonsBadUsageExitsWith2AndTakenPortWith1) {
  EXPECT_EQ(RunToEnd({ProgramPath("croutd"), "--no-such-flag"}).exit_code, 2);
  EXPECT_EQ(RunToEnd({ProgramPath("croutd"), "--max-n=zero"}).exit_code, 2);
  for (const char* flag : {"--listen=127.0.0.1:99999", "--listen=127.0.0.1",
                           "--listen=127.0.0.1:0,unix:", "--metrics-listen=127.0.0.1:65536",
                           "--metrics-listen=unix:/tmp/metrics"}) {
    const Finished refused = RunToEnd({ProgramPath("croutd"), flag});
    EXPECT_EQ(refused.exit_code, 2) << flag;
    EXPECT_THAT(refused.errors, ::testing::HasSubstr("is not")) << flag;
  }
  const Finished no_gpu = RunToEnd({ProgramPath("croutd"), "--devices=cuda:77"});
  EXPECT_EQ(no_gpu.exit_code, 1);
  EXPECT_THAT(no_gpu.errors, ::testing::ContainsRegex("no usable GPU: .|usable GPUs"));
  EXPECT_THAT(no_gpu.errors, ::testing::Not(::testing::HasSubstr("/"))) << "names no directory";
  Daemon daemon;
  const Finished second = RunToEnd({ProgramPath("croutd"), "--listen=" + daemon.address(),
                                    "--metrics-listen=127.0.0.1:0", "--devices=host"});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_EQ(second.output, "") << "it must not say that it is ready";
}

}  // namespace
}  // namespace crout::e2e::surface_test
