// SPDX-License-Identifier: Apache-2.0

// Tests croutctl with servers in all states, and its commands bench and top.
#include <signal.h>

#include <algorithm>

#include "crout/matrix_sink.h"
#include "tests/e2e/croutctl/croutctl.h"

namespace crout::e2e::croutctl_server_test {
namespace {

TEST_F(CroutctlTest, ServerCommands) {
  const Json algorithms = RunJson({"algorithms"});
  EXPECT_EQ(algorithms["devices"][0]["name"], "host");
  EXPECT_THAT(Strings(algorithms["devices"][0]["sparse_algorithms"]),
              ::testing::Contains("multifrontal"));
  EXPECT_THAT(Strings(algorithms["devices"][0]["batch_algorithms"]),
              ::testing::ElementsAre("irr_lu"));
  EXPECT_THAT(Strings(algorithms["devices"][0]["algorithms"]),
              ::testing::IsSupersetOf({"getrf", "cmpp"}));
  EXPECT_GT(RunJson({"devices"})["devices"][0]["budget_bytes"], 0);
  EXPECT_EQ(RunJson({"status", "--timeout=1m"})["draining"], false);
  const Json usage = RunJson({"quota"});
  EXPECT_EQ(usage["tenant"], "default");
  EXPECT_EQ(usage["cached_factors"], 0);
  EXPECT_FALSE(usage.contains("quota")) << "the daemon has no --quotas";
  EXPECT_THAT(daemon_.Ctl({"quota"}).output, ::testing::HasSubstr("device_seconds_per_minute"));
  EXPECT_GE(RunJson({"estimate", "1000", "--dtype=f32"})["peak_bytes"], 4'000'000);
  EXPECT_LT(RunJson({"estimate", "1000", "--nnz=5000"})["cached_bytes"], 9'000'000);
  EXPECT_FALSE(RunJson({"estimate", "1000"}).contains("precision"));
  EXPECT_EQ(RunJson({"estimate", "1000", "--precision=single"})["precision"], "single");
  EXPECT_EQ(daemon_.Ctl({"estimate"}).exit_code, 2);
  const Json factor = RunJson({"factor", matrix_, "--algorithm=multifrontal", "--name=pattern"});
  const Json exact = RunJson({"estimate", "--factor=pattern", "--algorithm=multifrontal"});
  EXPECT_EQ(exact["cached_bytes"], factor["bytes"]);
  EXPECT_EQ(exact["algorithm"], "multifrontal");
  EXPECT_FALSE(exact.value("rough", false));
}

TEST_F(CroutctlTest, BenchReportsPercentiles) {
  for (const char* mode : {"solve", "factor", "mixed"}) {
    const Json bench = RunJson(
        {"bench", std::string("--mode=") + mode, "--n=32", "--concurrency=1,3", "--requests=40"});
    const bool mixed = mode == std::string("mixed");
    EXPECT_EQ(bench["results"].size(), mixed ? 4u : 2u) << bench;
    for (const Json& row : bench["results"]) {
      EXPECT_EQ(row["errors"], 0);
      EXPECT_GT(row["p50_seconds"], 0);
      EXPECT_GE(row["p99_seconds"], row["p50_seconds"]);
      EXPECT_GE(row["max_seconds"], row["p99_seconds"]);
      EXPECT_GT(row["per_second"], 0);
    }
  }
  for (const char* dtype : {"f32", "c64", "c128"}) {
    const Json bench = RunJson({"bench", std::string("--dtype=") + dtype, "--n=8", "--requests=3"});
    EXPECT_EQ(bench["dtype"], dtype);
    EXPECT_EQ(bench["results"][0]["errors"], 0);
  }
  EXPECT_EQ(HoldingsOf(*daemon_.NewClient()).cached_factors, 0);
}

TEST_F(CroutctlTest, BenchKeepsItsRateAndComparesRuns) {
  const std::vector<std::string> command = {
      "bench",  "--rate=200",      "--warm-up=100ms",   "--duration=500ms",
      "--n=16", "--concurrency=4", "--factor-share=0.5"};
  Json first = RunJson(command);
  // The run makes 200 calls per second for half a second, even if the machine is slow.
  int64_t calls = 0;
  for (const Json& row : first["results"]) {
    calls += row["requests"].get<int64_t>() + row["errors"].get<int64_t>();
  }
  EXPECT_EQ(calls, 100);
  EXPECT_EQ(first["results"].size(), 2);  // factorize and solve
  const std::string baseline = directory_.File("first.json"), page = directory_.File("page.html");
  WriteFile(baseline, first.dump());
  std::vector<std::string> again = command;
  again.insert(again.end(), {"--baseline=" + baseline, "--report=" + page});
  const Json second = RunJson(again);
  EXPECT_GT(second["results"][0]["p50_ratio"], 0);
  EXPECT_THAT(ReadFile(page), ::testing::HasSubstr("stroke-dasharray"));
  EXPECT_EQ(daemon_.Ctl({"bench", "--requests=1", "--baseline=" + page}).exit_code, 19);
  EXPECT_EQ(HoldingsOf(*daemon_.NewClient()).cached_factors, 0);
}

TEST_F(CroutctlTest, TextAndJsonHaveTheSameContent) {
  const std::string handle = Factor();
  const Finished info = daemon_.Ctl({"describe", handle, "-v"});
  EXPECT_EQ(info.exit_code, 0);
  EXPECT_THAT(info.output, ::testing::ContainsRegex("handle +" + handle));
  EXPECT_THAT(info.output, ::testing::ContainsRegex("factor_dtype +f64"));
  EXPECT_THAT(daemon_.Ctl({"list"}).output, ::testing::HasSubstr(handle));
  EXPECT_THAT(daemon_.Ctl({"status", "--timeout=1m", "-v"}).output,
              ::testing::HasSubstr("cached_factors"));
}

TEST_F(CroutctlTest, UnreachableServerExitsWith3) {
  for (const char* server : {"--server=127.0.0.1:1", "--server=unix:/no/such/socket"}) {
    const Finished finished = RunToEnd({ProgramPath("croutctl"), server, "list"});
    EXPECT_EQ(finished.exit_code, 3) << finished.errors;
    EXPECT_THAT(finished.errors, ::testing::HasSubstr("UNREACHABLE"));
    EXPECT_THAT(finished.errors,
                ::testing::HasSubstr("start croutd there, or name another server with --server"));
  }
}

TEST_F(CroutctlTest, ACallOfTheMetricsPortIsReportedAsSuch) {
  const Finished finished =
      RunToEnd({ProgramPath("croutctl"), "--server=" + daemon_.metrics_address(), "list"});
  EXPECT_EQ(finished.exit_code, 3) << finished.errors;
  EXPECT_THAT(finished.errors, ::testing::HasSubstr("call the port of --listen"));
}

TEST_F(CroutctlTest, TopDrawsDevicesQueuesAndCache) {
  Factor();
  daemon_.AwaitRest();
  const Finished finished = daemon_.Ctl({"top", "--once"});
  EXPECT_EQ(finished.exit_code, 0) << finished.errors;
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("cache  1 factor  host memory \\[.*\\] "));
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("host +\\[ +\\] 0 of [0-9]+ +0 of [0-9]+"));
  EXPECT_THAT(finished.output, ::testing::ContainsRegex("\ndefault +1 .* 1\n"));
  const Json once = RunJson({"top", "--once"});
  EXPECT_EQ(once["cached_factors"], 1);
  EXPECT_EQ(once["tenants"][0]["tenant"], "default");
  EXPECT_EQ(once["tenants"][0]["cached_factors"], 1);
  // Without --once, top prints views until the reader exits.
  const Finished piped =
      RunToEnd({"/bin/sh", "-c", "\"$@\" | grep -m 2 max_n", "sh", ProgramPath("croutctl"),
                "--server=" + daemon_.address(), "--json", "top", "--interval=100ms"});
  EXPECT_EQ(std::count(piped.output.begin(), piped.output.end(), '\n'), 2) << piped.output;
}

// The health check ends because it has a default deadline.
TEST_F(CroutctlTest, StatusOfAStoppedServerExitsWith3) {
  daemon_.process().Signal(SIGSTOP);
  const Finished finished = daemon_.Ctl({"status"});
  daemon_.process().Signal(SIGCONT);
  EXPECT_EQ(finished.exit_code, 3) << finished.errors;
  EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: DEADLINE_EXCEEDED: "));
}

TEST_F(CroutctlTest, ADrainingServerIsReportedAsDraining) {
  Daemon draining(
      {"--drain-grace=0s", "--drain-limit=1h", "--upload-idle-timeout=inf", "--upload-min-rate=0"});
  // An unfinished upload delays the end of the drain.
  const auto client = draining.NewClient();
  const std::vector<double> a = {1};
  const auto factor = client->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 1, 1), {}, {});
  ASSERT_TRUE(factor.ok());
  draining.AwaitRest();  // later, all memory beyond the factor belongs to the upload
  const auto stub = draining.NewStub();
  grpc::ClientContext context;
  const auto open = stub->Factorize(&context);
  v1::FactorizeRequest request;
  request.mutable_header()->mutable_matrix()->mutable_dense()->set_rows(2);
  request.mutable_header()->mutable_matrix()->mutable_dense()->set_cols(2);
  ASSERT_TRUE(open->Write(request));
  ASSERT_TRUE(Eventually([&] { return HoldingsOf(*client).device_bytes > factor->bytes; }));
  draining.process().Signal(SIGTERM);
  Finished finished;
  EXPECT_TRUE(Eventually([&] {
    finished = draining.Ctl({"describe", factor->handle});
    return finished.exit_code != 0;
  }));
  EXPECT_EQ(finished.exit_code, 15) << finished.errors;
  EXPECT_THAT(finished.errors, ::testing::StartsWith("croutctl: UNAVAILABLE: "));
  context.TryCancel();
  EXPECT_EQ(draining.process().Wait(), 0);
}

}  // namespace
}  // namespace crout::e2e::croutctl_server_test
