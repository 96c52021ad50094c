// SPDX-License-Identifier: Apache-2.0

// Tests small requests of many clients to a real croutd, which runs waiting requests as one batch.
#include <cmath>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/e2e/harness/daemon.h"

namespace crout::e2e::dynamic_batch_test {
namespace {

constexpr int kClients = 16;
constexpr int kCalls = 20;  // calls per client
constexpr int64_t kOrder = 24;

// Returns a matrix that is diagonally dominant by columns. `seed` varies it.
std::vector<double> MatrixOf(int seed) {
  std::vector<double> a(kOrder * kOrder);
  for (int64_t j = 0; j < kOrder; ++j) {
    for (int64_t i = 0; i < kOrder; ++i) {
      a[i + j * kOrder] = i == j ? 2.0 * kOrder + seed : std::sin(static_cast<double>(7 * i + j));
    }
  }
  return a;
}

struct Answer {
  absl::Status status;
  FactorDescription factor;
  SolveResult result;
  std::vector<double> x = std::vector<double>(kOrder);
};

Answer FactorAndSolve(Client& client, int seed) {
  const std::vector<double> a = MatrixOf(seed);
  const std::vector<double> b(kOrder, 1.0);
  Answer answer;
  SpanSink sink(absl::MakeSpan(answer.x));
  const auto result =
      client.FactorAndSolve(MatrixSource::Dense(a, kOrder, kOrder),
                            MatrixSource::Dense(b, kOrder, 1), {}, &answer.factor, &sink);
  answer.status = result.status();
  if (result.ok()) answer.result = *result;
  return answer;
}

// Returns the value of the metric `name` for the host device, or 0 if it is missing.
double SampleOf(const Daemon& daemon, const std::string& name) {
  const std::string head = absl::StrCat(name, "{device=\"host\"} ");
  double value = 0;
  for (const absl::string_view line : absl::StrSplit(daemon.ScrapeMetrics(), '\n')) {
    if (absl::StartsWith(line, head)) {
      EXPECT_TRUE(absl::SimpleAtod(line.substr(head.size()), &value)) << line;
    }
  }
  return value;
}

TEST(DynamicBatchTest, ManyClientsGetTheBitsThatEachGetsAlone) {
  Daemon daemon({"--log-calls=none", "--streams=1"}, "croutd_test");
  std::vector<Answer> alone;
  const auto one = daemon.NewClient();
  for (int seed = 0; seed < kClients; ++seed) {
    alone.push_back(FactorAndSolve(*one, seed));
    ASSERT_TRUE(alone.back().status.ok()) << alone.back().status;
    EXPECT_EQ(alone.back().factor.algorithm, Algorithm::kIrrLu);
    EXPECT_LT(alone.back().result.backward_error.value(), 1e-14);
  }
  // The first call is held. The calls of other clients wait for it and form a batch.
  daemon.failpoints().Hold("dynamic_batch.run");
  const int before = daemon.failpoints().reached("dynamic_batch.run");
  {
    std::vector<std::jthread> threads;
    threads.reserve(kClients);
    for (int seed = 0; seed < kClients; ++seed) {
      threads.emplace_back([&, seed] {
        const auto client = daemon.NewClient();
        for (int call = 0; call < kCalls; ++call) {
          const Answer answer = FactorAndSolve(*client, seed);
          EXPECT_TRUE(answer.status.ok()) << answer.status;
          EXPECT_EQ(answer.x, alone[seed].x);
        }
      });
      if (seed == 0) daemon.failpoints().AwaitReached("dynamic_batch.run", before + 1);
    }
    EXPECT_TRUE(Eventually([&] { return HoldingsOf(*one).queue_depth == kClients - 1; }));
    daemon.failpoints().Release("dynamic_batch.run");
  }
  EXPECT_EQ(SampleOf(daemon, "crout_dynamic_batch_size_requests_sum"), kClients * (kCalls + 1));
  EXPECT_LE(SampleOf(daemon, "crout_dynamic_batch_size_requests_count"),
            kClients + 2 + kClients * (kCalls - 1));
}

TEST(DynamicBatchTest, WithBatchingOffNoBatchIsFormed) {
  Daemon daemon({"--batching=off", "--log-calls=none"});
  const Answer answer = FactorAndSolve(*daemon.NewClient(), 1);
  ASSERT_TRUE(answer.status.ok()) << answer.status;
  EXPECT_NE(answer.factor.algorithm, Algorithm::kIrrLu);
  EXPECT_EQ(SampleOf(daemon, "crout_dynamic_batch_size_requests_sum"), 0);
}

}  // namespace
}  // namespace crout::e2e::dynamic_batch_test
