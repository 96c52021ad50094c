// SPDX-License-Identifier: Apache-2.0

// Tests that durable factors survive kill -9 at every step of a write, with their request ids and
// as factors of series, and that a failing disk harms no other call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "crout/series.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::store_test {
namespace {

using ::crout::testing::FailsWith;

constexpr int64_t kOrder = 48;

// Returns `scale` times the identity, so that the solution for ones has elements 1 / scale.
std::vector<double> MatrixOf(double scale) {
  std::vector<double> a(kOrder * kOrder);
  for (int64_t i = 0; i < kOrder; ++i) a[static_cast<size_t>(i * (kOrder + 1))] = scale;
  return a;
}

MatrixSource Source(const std::vector<double>& a) {
  return MatrixSource::Dense(absl::MakeConstSpan(a), kOrder, kOrder);
}

class StoreTest : public ::testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {}) {
    daemon_.reset();
    flags.push_back("--store=" + store_.File(folder_));
    daemon_ = std::make_unique<Daemon>(flags, "croutd_test");
    client_ = daemon_->NewClient();
  }
  void Kill() {
    daemon_->process().Signal(SIGKILL);
    ASSERT_TRUE(daemon_->process().Wait().has_value());
  }

  absl::StatusOr<FactorDescription> Factor(double scale, bool durable = true,
                                           const std::string& request_id = "") {
    CacheOptions cache;
    cache.durable = durable;
    cache.request_id = request_id;
    const std::vector<double> a = MatrixOf(scale);
    return client_->Factor(Source(a), {}, cache);
  }

  // Expects that the factor solves, with a solution for one of the scales.
  void ExpectSolves(const std::string& handle, const std::vector<double>& scales) {
    const std::vector<double> b(kOrder, 1.0);
    BufferSink x;
    const auto result =
        client_->Solve(handle, MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), {}, &x);
    ASSERT_OK(result);
    ASSERT_EQ(x.values<double>().size(), kOrder);
    const double scale = 1 / x.values<double>()[0];
    EXPECT_THAT(scales, ::testing::Contains(scale));
    EXPECT_THAT(x.values<double>(), ::testing::Each(1 / scale));
  }
  // Runs a step of a series with the matrix for `scale`. Expects its solution.
  static absl::StatusOr<SeriesStep> Step(Series& series, double scale) {
    const std::vector<double> a = MatrixOf(scale), b(kOrder, 1.0);
    std::vector<double> x(kOrder);
    SpanSink sink(absl::MakeSpan(x));
    absl::StatusOr<SeriesStep> step =
        series.Step(Source(a), MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), &sink);
    if (step.ok()) {
      EXPECT_THAT(x, ::testing::Each(1 / scale));
    }
    return step;
  }
  // Holds the next write at `step`, begins `call`, and kills the daemon when it holds the write.
  template <class Call>
  void KillAt(const char* step, Call call) {
    daemon_->failpoints().Hold(step);
    const int reached = daemon_->failpoints().reached(step);
    auto interrupted = std::async(std::launch::async, call);
    daemon_->failpoints().AwaitReached(step, reached + 1);
    Kill();
    EXPECT_FALSE(interrupted.get().ok());
  }
  int64_t CachedFactors() { return client_->ServerInfo()->cached_factors; }

  const TempDir store_;
  std::string folder_ = "store";
  std::unique_ptr<Daemon> daemon_;
  std::unique_ptr<Client> client_;
};

TEST_F(StoreTest, KillAtEveryStepOfAWriteLosesNoAcknowledgedFactor) {
  for (const char* step :
       {"store.create", "store.write", "store.sync", "store.rename", "store.sync_directory"}) {
    SCOPED_TRACE(step);
    Start();
    const auto kept = Factor(2);
    ASSERT_OK(kept);
    EXPECT_TRUE(kept->durable);
    KillAt(step, [this] { return Factor(4); });
    Start();
    ExpectSolves(kept->handle, {2});
    // The interrupted factor is complete or absent.
    std::vector<std::string> handles;
    ASSERT_OK(client_->List("", [&](const FactorDescription& factor) {
      handles.push_back(factor.handle);
      return true;
    }));
    for (const std::string& handle : handles) {
      ExpectSolves(handle, {2, 4});
      EXPECT_OK(client_->Release(handle));
    }
    EXPECT_EQ(CachedFactors(), 0);
    Kill();
  }
}

TEST_F(StoreTest, KillDuringARefactorizationKeepsOneOfTheVersions) {
  for (const char* step : {"store.write", "store.sync", "store.rename", "store.sync_directory"}) {
    SCOPED_TRACE(step);
    Start();
    const auto factor = Factor(2);
    ASSERT_OK(factor);
    KillAt(step, [&] {
      const std::vector<double> a = MatrixOf(8);
      return client_->Refactor(factor->handle, Source(a), {});
    });
    Start();
    ExpectSolves(factor->handle, {2, 8});
    EXPECT_EQ(CachedFactors(), 1);
    // An acknowledged version is the one that survives.
    const std::vector<double> a = MatrixOf(16);
    ASSERT_OK(client_->Refactor(factor->handle, Source(a), {}));
    Kill();
    Start();
    ExpectSolves(factor->handle, {16});
    EXPECT_OK(client_->Release(factor->handle));
    // A kill just after a release may undo it, because the file is removed after the reply.
    EXPECT_TRUE(Eventually([this] { return client_->ServerInfo()->store->used_bytes == 0; }));
    Kill();
  }
}

TEST_F(StoreTest, ARequestIdHasOneFactorAfterAKill) {
  const auto factor = [this] { return Factor(2, /*durable=*/true, "once"); };
  for (const char* step : {"store.write", "store.rename", "store.sync_directory", "none"}) {
    SCOPED_TRACE(step);
    folder_ = step;
    Start();
    std::string acknowledged;
    if (step == std::string("none")) {
      const auto first = factor();
      ASSERT_OK(first);
      acknowledged = first->handle;
      Kill();
    } else {
      KillAt(step, factor);
    }
    Start();
    const auto again = factor();
    ASSERT_OK(again);
    EXPECT_TRUE(acknowledged.empty() || again->handle == acknowledged);
    EXPECT_EQ(factor()->handle, again->handle);
    EXPECT_EQ(CachedFactors(), 1);
    ExpectSolves(again->handle, {2});
    Kill();
  }
}

// The client has the solutions of the steps that were answered. It repeats the step that was not.
TEST_F(StoreTest, ASeriesContinuesAfterAKill) {
  for (const char* step : {"store.write", "store.sync_directory"}) {
    SCOPED_TRACE(step);
    folder_ = step;
    Start();
    const auto factor = Factor(2);
    ASSERT_OK(factor);
    const SeriesOptions options = {.handle = factor->handle, .strategy = SeriesStrategy::kRefactor};
    int64_t answered_version = 0;
    {
      Series series(daemon_->NewClient(), options);
      const auto answered = Step(series, 4);
      ASSERT_OK(answered);
      answered_version = answered->result.factor_version;
      KillAt(step, [&] { return Step(series, 8); });
    }
    Start();
    // The answered step made the factor, or the step that was not answered did.
    const int64_t version = client_->Describe(factor->handle)->version;
    EXPECT_GE(version, answered_version);
    ExpectSolves(factor->handle, {version == answered_version ? 4.0 : 8.0});
    {
      Series series(daemon_->NewClient(), options);
      const auto repeated = Step(series, 8);
      ASSERT_OK(repeated);
      EXPECT_GT(repeated->result.factor_version, version);
      ASSERT_OK(Step(series, 16));
    }
    Kill();
    Start();
    ExpectSolves(factor->handle, {16});
  }
}

TEST_F(StoreTest, FactorsOnADeviceSurviveARestart) {
  Start({"--fake-device"});
  const auto factor = Factor(2);
  ASSERT_OK(factor);
  EXPECT_EQ(factor->tier, Tier::kDevice);
  const auto lost = Factor(4, /*durable=*/false);
  ASSERT_OK(lost);
  Kill();
  Start({"--fake-device"});
  EXPECT_EQ(client_->Describe(factor->handle)->tier, Tier::kStore);
  ExpectSolves(factor->handle, {2});
  EXPECT_EQ(client_->Describe(factor->handle)->tier, Tier::kDevice);
  EXPECT_THAT(client_->Describe(lost->handle), FailsWith(absl::StatusCode::kNotFound, "restarted"));
}

// Each file has the analysis. In memory the factors share one, and a new factor of the pattern uses
// it.
TEST_F(StoreTest, FactorsOfAPatternShareAnAnalysisAfterARestart) {
  constexpr int32_t kSparseOrder = 3000;
  std::vector<int32_t> row_start = {0}, columns;
  for (int32_t i = 0; i < kSparseOrder; ++i) {
    for (int32_t j = std::max(i - 1, 0); j <= std::min(i + 1, kSparseOrder - 1); ++j) {
      columns.push_back(j);
    }
    row_start.push_back(static_cast<int32_t>(columns.size()));
  }
  CacheOptions cache;
  cache.durable = true;
  const auto factor = [&](double diagonal) {
    std::vector<double> values(columns.size(), -1.0);
    for (size_t i = 0; i < values.size(); i += 3) values[i] = diagonal;
    return client_->Factor(
        MatrixSource::CompressedRows(absl::MakeConstSpan(values), absl::MakeConstSpan(row_start),
                                     absl::MakeConstSpan(columns), kSparseOrder, kSparseOrder),
        {}, cache);
  };
  const auto reserved_after_restart = [&] {
    Kill();
    Start();
    return client_->ServerInfo()->host_reserved_bytes;
  };
  Start();
  const auto first = factor(4);
  ASSERT_OK(first);
  const int64_t reserved = reserved_after_restart();
  EXPECT_EQ(CachedFactors(), 1);
  ASSERT_OK(factor(8));
  EXPECT_LT(reserved_after_restart() - reserved, 2 * sizeof(int32_t) * kSparseOrder)
      << "the orders of rows and columns need more";
  EXPECT_EQ(CachedFactors(), 2);
  const auto third = factor(16);
  ASSERT_OK(third);
  EXPECT_TRUE(third->sparse->analysis_reused);
  const std::vector<double> b(kSparseOrder, 1.0);
  BufferSink x;
  const auto solution = client_->Solve(
      first->handle, MatrixSource::Dense(absl::MakeConstSpan(b), kSparseOrder, 1), {}, &x);
  ASSERT_OK(solution);
  EXPECT_THAT(solution->backward_error, ::testing::Optional(::testing::Lt(1e-14)));
}

// The first matrix has zero pivots, so that its analysis has other fronts than the pattern
// requires. The analysis of the Schur complement factors a part of the matrix.
TEST_F(StoreTest, AnAnalysisForOneFactorIsNotSharedAfterARestart) {
  constexpr int32_t kLeaves = 30, kBorder = 60, kStar = kLeaves + kBorder;
  std::vector<int32_t> rows, columns;
  std::vector<double> values;
  const auto add = [&](int32_t i, int32_t j, double value) {
    rows.push_back(i);
    columns.push_back(j);
    values.push_back(value);
  };
  for (int32_t i = 0; i < kLeaves; ++i) {
    add(i, i, 0);
    for (int32_t k = 0; k < 3; ++k) {
      const int32_t j = kLeaves + (7 * i + 11 * k) % kBorder;
      add(i, j, 1.0 + k);
      add(j, i, 2.0 - 0.3 * k);
    }
  }
  for (int32_t i = 0; i < kBorder; ++i) {
    for (int32_t j = 0; j < kBorder; ++j) {
      add(kLeaves + i, kLeaves + j, (i == j ? 4 : 0) + std::cos(i * i + 3 * i * j));
    }
  }
  const auto source = [&] {
    return MatrixSource::Coordinates(absl::MakeConstSpan(values), absl::MakeConstSpan(rows),
                                     absl::MakeConstSpan(columns), kStar, kStar);
  };
  FactorOptions options;
  options.algorithm = Algorithm::kMultifrontal;
  options.equilibrate = Equilibrate::kOff;
  CacheOptions cache;
  cache.durable = true;
  Start();
  const auto postponed = client_->Factor(source(), options, cache);
  ASSERT_OK(postponed);
  EXPECT_EQ(postponed->sparse->perturbed_pivots, 0);
  Kill();
  Start();
  EXPECT_EQ(CachedFactors(), 1);
  for (size_t i = 0; i < values.size(); ++i) {
    if (rows[i] == columns[i]) values[i] = 100;
  }
  const auto factor = client_->Factor(source(), options, {});
  ASSERT_OK(factor);
  EXPECT_FALSE(factor->sparse->analysis_reused);
}

TEST_F(StoreTest, NoStreamWaitsForTheDisk) {
  Start({"--streams=1"});
  const auto other = Factor(2, /*durable=*/false);
  ASSERT_OK(other);
  const auto durable = Factor(4);
  ASSERT_OK(durable);
  const std::vector<double> a = MatrixOf(8);
  const auto refactor = [&] { return client_->Refactor(durable->handle, Source(a)); };
  const auto factor = [this] { return Factor(16); };
  const auto factor_and_solve = [&] {
    FactorAndSolveOptions options;
    options.cache.emplace().durable = true;
    const std::vector<double> b(kOrder, 1.0);
    FactorDescription description;
    BufferSink x;
    return client_->FactorAndSolve(Source(a),
                                   MatrixSource::Dense(absl::MakeConstSpan(b), kOrder, 1), options,
                                   &description, &x);
  };
  const auto expect_free_stream = [&](auto call) {
    daemon_->failpoints().Hold("store.sync");
    const int reached = daemon_->failpoints().reached("store.sync");
    auto held = std::async(std::launch::async, call);
    daemon_->failpoints().AwaitReached("store.sync", reached + 1);
    ExpectSolves(other->handle, {2});
    daemon_->failpoints().Release("store.sync");
    EXPECT_OK(held.get());
  };
  expect_free_stream(factor);
  expect_free_stream(refactor);
  expect_free_stream(factor_and_solve);
  ExpectSolves(durable->handle, {8});
  Series series(daemon_->NewClient(),
                {.handle = durable->handle, .strategy = SeriesStrategy::kRefactor});
  expect_free_stream([&] { return Step(series, 32); });
  ExpectSolves(durable->handle, {32});
}

TEST_F(StoreTest, AFailingDiskHarmsNoOtherCall) {
  Start();
  daemon_->failpoints().Fail("store.sync", absl::UnavailableError("the disk failed"));
  EXPECT_THAT(Factor(2), FailsWith(absl::StatusCode::kUnavailable, "the disk failed"));
  EXPECT_THAT(Factor(2), FailsWith(absl::StatusCode::kUnavailable, "the disk failed"));
  EXPECT_TRUE(client_->ServerInfo()->store->degraded);
  EXPECT_THAT(daemon_->ScrapeMetrics(), ::testing::HasSubstr("crout_store_degraded 1"));
  const auto factor = Factor(4, /*durable=*/false);
  ASSERT_OK(factor);
  ExpectSolves(factor->handle, {4});
  daemon_->failpoints().Fail("store.sync", absl::OkStatus(), 0);
  daemon_->failpoints().Advance(absl::Minutes(1));
  ASSERT_OK(Factor(2));
  EXPECT_FALSE(client_->ServerInfo()->store->degraded);
}

TEST_F(StoreTest, OneDaemonUsesADirectory) {
  Start();
  const Finished second =
      RunToEnd({ProgramPath("croutd"), "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                "--devices=host", "--state-dir=none", "--store=" + store_.File("store")});
  EXPECT_EQ(second.exit_code, 1);
  EXPECT_THAT(second.errors, ::testing::HasSubstr("another croutd uses"));
}

TEST_F(StoreTest, DurableFactorsNeedAStore) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  CacheOptions cache;
  cache.durable = true;
  const std::vector<double> a = MatrixOf(2);
  EXPECT_THAT(client->Factor(Source(a), {}, cache),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--store=DIR"));
  EXPECT_FALSE(client->ServerInfo()->store.has_value());
}

}  // namespace
}  // namespace crout::e2e::store_test
