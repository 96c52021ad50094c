// SPDX-License-Identifier: Apache-2.0

#include "server/observability/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <set>
#include <thread>

#include "absl/strings/str_cat.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"
#include "server/engine/cache/cache_events.h"
#include "server/observability/metrics/lazy_histogram.h"
#include "tests/server/scrape.h"

namespace crout::metrics_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Optional;

MethodTraits Named(const char* name, bool iterative = false) {
  return {.name = name, .description = "", .iterative = iterative};
}

MetricsOptions TwoDevices() {
  return {.devices = {{.name = "host",
                       .algorithms = {Named("getrf"), Named("cmpp"), Named("icm", true)},
                       .solvers = {Named("getrs"), Named("ss", true)}},
                      {.name = "cuda:0",
                       .algorithms = {Named("getrf"), Named("icm", true), Named("icmpp", true)},
                       .solvers = {Named("trsm")}}},
          .cuda = "none"};
}

TEST(ScrapeTest, FindsExactSeriesOnly) {
  const std::string text = "# HELP a b\na_total 2\na{x=\"1\"} 3\n";
  EXPECT_THAT(SampleOf(text, "a_total"), Optional(2));
  EXPECT_THAT(SampleOf(text, "a{x=\"1\"}"), Optional(3));
  EXPECT_EQ(SampleOf(text, "a"), std::nullopt);
  EXPECT_EQ(SampleOf(text, "a{x=\"2\"}"), std::nullopt);
}

TEST(MetricsTest, SeriesExistAtZero) {
  Metrics metrics(TwoDevices());
  const std::string text = metrics.Scrape();
  for (const char* series : {
           "crout_requests_total{code=\"OK\",method=\"Factorize\"}",
           "crout_requests_total{code=\"DATA_LOSS\",method=\"GetServerInfo\"}",
           "crout_phase_duration_seconds_count{phase=\"queue\"}",
           "crout_queue_depth{device=\"cuda:0\",queue=\"run\"}",
           "crout_queue_depth{device=\"cuda:0\",queue=\"release\"}",
           "crout_queue_depth{device=\"none\",queue=\"release\"}",
           "crout_queue_depth{device=\"none\",queue=\"parse\"}",
           "crout_rejected_total{reason=\"queue_full\"}",
           "crout_iterations_total{algorithm=\"icmpp\",start=\"warm\"}",
           "crout_sections_total{algorithm=\"icm\",start=\"cold\"}",
           "crout_pivots_total{algorithm=\"icmpp\",start=\"cold\"}",
           "crout_backward_error_count{dtype=\"f64\"}",
           "crout_solver_fallbacks_total{reason=\"condition\"}",
           "crout_cache_entries{tier=\"host\"}",
           "crout_cache_bytes{tier=\"device\"}",
           "crout_cache_hits_total{tier=\"host\"}",
           "crout_cache_misses_total{reason=\"other_tenant\"}",
           "crout_cache_evictions_total{reason=\"pressure\",tier=\"device\"}",
           "crout_cache_promotions_total",
           "crout_cache_promotion_seconds_count",
           "crout_cache_device_copies",
           "crout_cache_device_copy_bytes",
           "crout_cache_device_copy_seconds_count",
           "crout_device_memory_bytes{device=\"cuda:0\",kind=\"pool_cached\"}",
           "crout_streams{device=\"host\"}",
           "crout_streams_busy{device=\"host\"}",
           "crout_received_bytes_total",
           "crout_sent_bytes_total",
           "crout_shared_memory_received_bytes_total",
           "crout_shared_memory_sent_bytes_total",
           "crout_shared_memory_refused_total",
           "crout_shared_memory_regions",
           "crout_shared_memory_bytes{kind=\"used\"}",
           "crout_shared_memory_bytes{kind=\"registered\"}",
           "crout_shared_memory_bytes{kind=\"limit\"}",
           "crout_upload_size_bytes_count",
           "crout_uploads_in_flight",
           "crout_host_memory_bytes{kind=\"limit\"}",
           "crout_host_memory_bytes{kind=\"reserved\"}",
           "crout_call_memory_bytes{kind=\"limit\"}",
           "crout_call_memory_bytes{kind=\"reserved\"}",
           "crout_device_memory_age_seconds{device=\"cuda:0\"}",
           "crout_batch_singular_members_total{device=\"cuda:0\"}",
           "crout_series_steps_total{device=\"host\",outcome=\"fell_back\"}",
           "crout_series_iterations_total{device=\"cuda:0\",factor=\"old\"}",
           "crout_series_inaccurate_total{device=\"host\"}",
           "crout_log_dropped_total",
           "crout_tls_handshakes_failed_total",
           "crout_out_of_memory_total",
           "crout_wasted_seconds_total",
           "crout_overdue_jobs",
           "crout_stalled_jobs_total",
       }) {
    EXPECT_THAT(SampleOf(text, series), Optional(0)) << series;
  }
}

TEST(MetricsTest, StepsOfSeriesCountByDeviceAndOutcome) {
  Metrics metrics(TwoDevices());
  SeriesStepSummary reused;
  reused.solved = reused.accurate = true;
  reused.old_iterations = 4;
  metrics.device(1).ObserveSeriesStep(reused, 3);
  SeriesStepSummary fell_back = reused;
  fell_back.new_iterations = 2;
  fell_back.accurate = false;
  metrics.device(1).ObserveSeriesStep(fell_back, 0);
  metrics.device(0).ObserveSeriesStep(SeriesStepSummary(), 5);
  const std::string text = metrics.Scrape();
  for (const auto& [series, expected] : std::vector<std::pair<std::string, double>>{
           {"crout_series_steps_total{device=\"cuda:0\",outcome=\"reused\"}", 1},
           {"crout_series_steps_total{device=\"cuda:0\",outcome=\"fell_back\"}", 1},
           {"crout_series_steps_total{device=\"cuda:0\",outcome=\"singular\"}", 0},
           {"crout_series_steps_total{device=\"host\",outcome=\"singular\"}", 1},
           {"crout_series_iterations_total{device=\"cuda:0\",factor=\"old\"}", 8},
           {"crout_series_iterations_total{device=\"cuda:0\",factor=\"new\"}", 2},
           {"crout_series_inaccurate_total{device=\"cuda:0\"}", 1},
           {"crout_series_inaccurate_total{device=\"host\"}", 1},
           {"crout_series_factor_age_steps_sum{device=\"cuda:0\"}", 3},
           {"crout_series_factor_age_steps_bucket{device=\"cuda:0\",le=\"2\"}", 1},
           {"crout_series_factor_age_steps_count{device=\"host\"}", 1},
       }) {
    EXPECT_THAT(SampleOf(text, series), Optional(expected)) << series;
  }
}

TEST(MetricsTest, HistogramsWithLabelsAppearWhenFirstUsed) {
  Metrics metrics(TwoDevices());
  for (const char* family : {"crout_request_duration_seconds", "crout_factor_duration_seconds",
                             "crout_solve_duration_seconds", "phase=\"factor\"",
                             "crout_backward_error_count{dtype=\"f32\"}"}) {
    EXPECT_THAT(metrics.Scrape(), Not(HasSubstr(family)));
  }
  metrics.CountRequest(Method::kSolve, absl::StatusCode::kOk);
  metrics.ObserveDuration(Method::kSolve, 0.5);
  metrics.ObservePhase(JobPhase::kFactor, 0.25);
  metrics.ObserveBackwardError(DType::kFloat32, 1e-8);
  const std::string text = metrics.Scrape();
  EXPECT_THAT(SampleOf(text, "crout_request_duration_seconds_count{method=\"Solve\"}"),
              Optional(1));
  EXPECT_THAT(SampleOf(text, "crout_phase_duration_seconds_sum{phase=\"factor\"}"), Optional(0.25));
  EXPECT_THAT(SampleOf(text, "crout_backward_error_count{dtype=\"f32\"}"), Optional(1));
  EXPECT_THAT(text, Not(HasSubstr("crout_request_duration_seconds_count{method=\"Factorize\"}")));
}

TEST(MetricsTest, CountsWhatIsRecorded) {
  Metrics metrics(TwoDevices());
  metrics.CountRequest(Method::kSolve, absl::StatusCode::kNotFound);
  metrics.ObserveDuration(Method::kSolve, 0.002);
  metrics.CountRequest(Method::kSolve, static_cast<absl::StatusCode>(99));
  metrics.ObserveDuration(Method::kSolve, 0.002);
  metrics.ObservePhase(JobPhase::kQueue, 0.25);
  metrics.CountRejected(Rejection::kMemory, "t");
  metrics.CountReceived(100);
  metrics.CountSent(7);
  metrics.ObserveUpload(4096);
  for (const SolverFallback fallback :
       {SolverFallback::kNone, SolverFallback::kBackwardError, SolverFallback::kBackwardError}) {
    metrics.CountSolverFallback(fallback);
  }
  metrics.CountIterations("icm", Start::kWarm, 3, 2, 1);
  metrics.CountIterations("getrf", Start::kCold, 9, 9, 9);  // ignored: getrf does not iterate
  metrics.CountPoorResult("cm", PoorResult::kComplement);
  metrics.CountPoorResult("cm", PoorResult::kComplement);
  metrics.OnHit(Tier::kHost);
  metrics.OnMiss(CacheMiss::kExpired);
  metrics.OnEviction(Tier::kDevice, CacheEviction::kPressure);
  metrics.OnPromotion(0.5);
  metrics.OnDeviceCopy(0.25);
  const std::string text = metrics.Scrape();
  auto expect = [&](const char* series, double value) {
    EXPECT_THAT(SampleOf(text, series), Optional(value)) << series;
  };
  expect("crout_requests_total{code=\"NOT_FOUND\",method=\"Solve\"}", 1);
  expect("crout_requests_total{code=\"UNKNOWN\",method=\"Solve\"}", 1);
  expect("crout_request_duration_seconds_count{method=\"Solve\"}", 2);
  expect("crout_phase_duration_seconds_sum{phase=\"queue\"}", 0.25);
  expect("crout_rejected_total{reason=\"memory\"}", 1);
  expect("crout_received_bytes_total", 100);
  expect("crout_sent_bytes_total", 7);
  expect("crout_upload_size_bytes_sum", 4096);
  expect("crout_solver_fallbacks_total{reason=\"condition\"}", 0);
  expect("crout_solver_fallbacks_total{reason=\"backward_error\"}", 2);
  expect("crout_iterations_total{algorithm=\"icm\",start=\"warm\"}", 3);
  expect("crout_sections_total{algorithm=\"icm\",start=\"warm\"}", 2);
  expect("crout_pivots_total{algorithm=\"icm\",start=\"warm\"}", 1);
  expect("crout_iterations_total{algorithm=\"icm\",start=\"cold\"}", 0);
  EXPECT_THAT(text, Not(HasSubstr("crout_iterations_total{algorithm=\"getrf\"")));
  EXPECT_THAT(text, Not(HasSubstr("crout_iterations_total{algorithm=\"ss\"")));
  expect("crout_poor_results_total{algorithm=\"cm\",result=\"complement\"}", 2);
  expect("crout_poor_results_total{algorithm=\"getrf\",result=\"factor\"}", 0);
  expect("crout_cache_hits_total{tier=\"host\"}", 1);
  expect("crout_cache_misses_total{reason=\"expired\"}", 1);
  expect("crout_cache_evictions_total{reason=\"pressure\",tier=\"device\"}", 1);
  expect("crout_cache_promotions_total", 1);
  expect("crout_cache_promotion_seconds_sum", 0.5);
  expect("crout_cache_device_copy_seconds_sum", 0.25);
}

TEST(MetricsTest, UploadsCountWhileTheyLive) {
  Metrics metrics({});
  {
    const Metrics::UploadInFlight first(metrics);
    const Metrics::UploadInFlight second(metrics);
    EXPECT_THAT(SampleOf(metrics.Scrape(), "crout_uploads_in_flight"), Optional(2));
  }
  EXPECT_THAT(SampleOf(metrics.Scrape(), "crout_uploads_in_flight"), Optional(0));
}

TEST(MetricsTest, DurationsGoToTheirSizeClass) {
  Metrics metrics(TwoDevices());
  metrics.device(0).ObserveFactor("cmpp", DType::kFloat64, 65, 0.5);
  metrics.device(1).ObserveSolve("trsm", DType::kFloat32, 100000, 2);
  metrics.device(1).ObserveFactor("cmpp", DType::kFloat64, 65, 0.5);  // the device has no cmpp
  const std::string text = metrics.Scrape();
  EXPECT_THAT(SampleOf(text,
                       "crout_factor_duration_seconds_sum{algorithm=\"cmpp\",device=\"host\","
                       "dtype=\"f64\",size_class=\"256\"}"),
              Optional(0.5));
  EXPECT_THAT(SampleOf(text,
                       "crout_solve_duration_seconds_sum{device=\"cuda:0\",dtype=\"f32\","
                       "size_class=\"+Inf\",solver=\"trsm\"}"),
              Optional(2));
  EXPECT_THAT(text, Not(HasSubstr("algorithm=\"cmpp\",device=\"cuda:0\"")));
}

TEST(MetricsTest, SizeClassesHoldTheirBound) {
  EXPECT_EQ(kSizeClassNames[OrderClassOf(0)], "64");
  EXPECT_EQ(kSizeClassNames[OrderClassOf(64)], "64");
  EXPECT_EQ(kSizeClassNames[OrderClassOf(65)], "256");
  EXPECT_EQ(kSizeClassNames[OrderClassOf(65536)], "65536");
  EXPECT_EQ(kSizeClassNames[OrderClassOf(65537)], "+Inf");
}

TEST(MetricsTest, BucketsRise) {
  for (const auto& buckets :
       {LatencyBuckets(), KernelBuckets(), SizeBuckets(), BackwardErrorBuckets()}) {
    EXPECT_EQ(std::set<double>(buckets.begin(), buckets.end()).size(), buckets.size());
    EXPECT_TRUE(std::is_sorted(buckets.begin(), buckets.end()));
  }
}

TEST(MetricsTest, BackwardErrorsThatAreNotFiniteStayOutOfFiniteBuckets) {
  Metrics metrics({});
  metrics.ObserveBackwardError(DType::kFloat64, 3e-17);
  metrics.ObserveBackwardError(DType::kFloat64, std::nan(""));
  metrics.ObserveBackwardError(DType::kFloat64, std::numeric_limits<double>::infinity());
  const std::string text = metrics.Scrape();
  EXPECT_THAT(SampleOf(text, "crout_backward_error_bucket{dtype=\"f64\",le=\"1e-17\"}"),
              Optional(0));
  EXPECT_THAT(SampleOf(text, "crout_backward_error_bucket{dtype=\"f64\",le=\"1e-16\"}"),
              Optional(1));
  EXPECT_THAT(SampleOf(text, "crout_backward_error_bucket{dtype=\"f64\",le=\"1\"}"), Optional(1));
  EXPECT_THAT(SampleOf(text, "crout_backward_error_count{dtype=\"f64\"}"), Optional(3));
  EXPECT_TRUE(std::isfinite(SampleOf(text, "crout_backward_error_sum{dtype=\"f64\"}").value()));
}

TEST(MetricsTest, GaugesMirrorTheSourceAtEveryScrape) {
  Metrics metrics(TwoDevices());
  ServerState state;
  state.devices.resize(2);
  metrics.SetStateSource([&] { return state; });
  state.devices[1].reserved_bytes = 1 << 20;
  state.devices[1].healthy = false;
  state.devices[0].queue_depth = 3;
  state.devices[0].releasing_depth = 5;
  state.releasing_depth = 6;
  state.parsing_depth = 8;
  state.cache[static_cast<size_t>(Tier::kHost)] = {.entries = 2, .bytes = 512};
  state.devices[1].memory_age_seconds = 2.5;
  state.host_memory_limit = 8192;
  state.host_memory_reserved = 2048;
  state.call_memory_limit = 4096;
  state.call_memory_reserved = 1024;
  state.log_lines_dropped = 7;
  state.abandoned_tasks = 3;
  std::string text = metrics.Scrape();
  EXPECT_THAT(SampleOf(text, "crout_device_memory_bytes{device=\"cuda:0\",kind=\"reserved\"}"),
              Optional(1 << 20));
  EXPECT_THAT(SampleOf(text, "crout_device_healthy{device=\"cuda:0\"}"), Optional(0));
  EXPECT_THAT(SampleOf(text, "crout_device_healthy{device=\"host\"}"), Optional(1));
  EXPECT_THAT(SampleOf(text, "crout_queue_depth{device=\"host\",queue=\"run\"}"), Optional(3));
  EXPECT_THAT(SampleOf(text, "crout_queue_depth{device=\"host\",queue=\"release\"}"), Optional(5));
  EXPECT_THAT(SampleOf(text, "crout_queue_depth{device=\"none\",queue=\"release\"}"), Optional(6));
  EXPECT_THAT(SampleOf(text, "crout_queue_depth{device=\"none\",queue=\"parse\"}"), Optional(8));
  EXPECT_THAT(SampleOf(text, "crout_cache_entries{tier=\"host\"}"), Optional(2));
  EXPECT_THAT(SampleOf(text, "crout_cache_bytes{tier=\"host\"}"), Optional(512));
  EXPECT_THAT(SampleOf(text, "crout_device_memory_age_seconds{device=\"cuda:0\"}"), Optional(2.5));
  EXPECT_THAT(SampleOf(text, "crout_host_memory_bytes{kind=\"limit\"}"), Optional(8192));
  EXPECT_THAT(SampleOf(text, "crout_host_memory_bytes{kind=\"reserved\"}"), Optional(2048));
  EXPECT_THAT(SampleOf(text, "crout_call_memory_bytes{kind=\"limit\"}"), Optional(4096));
  EXPECT_THAT(SampleOf(text, "crout_call_memory_bytes{kind=\"reserved\"}"), Optional(1024));
  EXPECT_THAT(SampleOf(text, "crout_log_dropped_total"), Optional(7));
  EXPECT_THAT(SampleOf(text, "crout_out_of_memory_total"), Optional(3));
  EXPECT_THAT(SampleOf(metrics.Scrape(), "crout_log_dropped_total"), Optional(7)) << "not again";
  state.devices[0].queue_depth = 0;
  EXPECT_THAT(SampleOf(metrics.Scrape(), "crout_queue_depth{device=\"host\",queue=\"run\"}"),
              Optional(0));
}

TEST(MetricsTest, SourceIsNotCalledOnceCleared) {
  Metrics metrics(TwoDevices());
  int calls = 0;
  metrics.SetStateSource([&] {
    ++calls;
    return ServerState();
  });
  metrics.Scrape();
  metrics.SetStateSource(nullptr);
  metrics.Scrape();
  EXPECT_EQ(calls, 1);
}

TEST(MetricsTest, ScrapesBesideUpdates) {
  Metrics metrics(TwoDevices());
  metrics.SetStateSource([] { return ServerState(); });
  constexpr int kRounds = 200;
  auto update = [&] {
    for (int i = 0; i < kRounds; ++i) {
      metrics.CountRequest(Method::kSolve, absl::StatusCode::kOk);
      metrics.ObserveDuration(Method::kSolve, 1e-3);
      metrics.device(0).ObserveFactor("getrf", DType::kFloat64, 10, 1e-3);
    }
  };
  std::thread first(update), second(update);
  for (int i = 0; i < 10; ++i) metrics.Scrape();
  first.join();
  second.join();
  EXPECT_THAT(SampleOf(metrics.Scrape(), "crout_requests_total{code=\"OK\",method=\"Solve\"}"),
              Optional(2 * kRounds));
}

// promtool checks the names, units and help texts of the metrics.
TEST(MetricsTest, PassesPromtool) {
  if (std::system("command -v promtool >/dev/null") != 0) GTEST_SKIP() << "promtool not found";
  Metrics metrics(TwoDevices());
  const std::string path = absl::StrCat(::testing::TempDir(), "/crout_metrics_test.prom");
  std::ofstream(path) << metrics.Scrape();
  EXPECT_EQ(std::system(absl::StrCat("promtool check metrics <", path).c_str()), 0);
  std::remove(path.c_str());
}

}  // namespace
}  // namespace crout::metrics_test
