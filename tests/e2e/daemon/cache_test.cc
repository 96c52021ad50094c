// SPDX-License-Identifier: Apache-2.0

// Tests the factor cache through calls: leases, tenants, pages, eviction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::cache_test {
namespace {

using absl::StatusCode;

// Returns `value` times the identity.
std::vector<double> Diagonal(int64_t n, double value) {
  std::vector<double> a(static_cast<size_t>(n * n));
  for (int64_t i = 0; i < n; ++i) a[static_cast<size_t>(i * (n + 1))] = value;
  return a;
}

absl::StatusOr<FactorDescription> Factor(Client& client, const std::vector<double>& a, int64_t n,
                                         const CacheOptions& cache = {}) {
  return client.Factor(MatrixSource::Dense(absl::MakeConstSpan(a), n, n), {}, cache);
}

CacheOptions Named(const std::string& name, absl::Duration lease = absl::ZeroDuration()) {
  return {.lease = lease, .name = name};
}

// Solves for the vector of ones and returns the first element of the solution.
absl::StatusOr<double> SolveOnes(Client& client, const std::string& handle, int64_t n) {
  const std::vector<double> b(static_cast<size_t>(n), 1.0);
  BufferSink x;
  const auto result =
      client.Solve(handle, MatrixSource::Dense(absl::MakeConstSpan(b), n, 1), {}, &x);
  if (!result.ok()) return result.status();
  return x.values<double>()[0];
}

TEST(CacheTest, LeasesEndUnlessRenewed) {
  Daemon daemon({}, "croutd_test");
  const auto client = daemon.NewClient();
  const auto a = Diagonal(2, 4);
  ASSERT_OK_AND_ASSIGN(const auto brief, Factor(*client, a, 2, Named("brief", absl::Hours(1))));
  ASSERT_OK_AND_ASSIGN(const auto renewed, Factor(*client, a, 2, Named("kept", absl::Hours(1))));
  ASSERT_OK_AND_ASSIGN(const absl::Time end, client->Renew(renewed.handle, absl::Hours(10)));
  EXPECT_GT(end, absl::Now() + absl::Hours(9));
  daemon.failpoints().Advance(absl::Hours(2));
  const absl::Status gone = client->Describe(brief.handle).status();
  EXPECT_EQ(Reason(gone), "HANDLE_EXPIRED") << gone;
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_EQ(client->Renew(brief.handle, absl::Minutes(1)).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(client->Describe(renewed.handle), crout::testing::IsOk());
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client).cached_factors == 1; }));
}

// A factor is used every two hours, within its lease of three hours, until its longest life ends.
TEST(CacheTest, UsesExtendALeaseUpToTheMaximumLife) {
  Daemon daemon({"--max-life=10h"}, "croutd_test");
  const auto client = daemon.NewClient();
  ASSERT_OK_AND_ASSIGN(const auto info, client->ServerInfo());
  EXPECT_EQ(info.limits.max_life, absl::Hours(10));
  ASSERT_OK_AND_ASSIGN(const auto used,
                       Factor(*client, Diagonal(2, 4), 2, Named("used", absl::Hours(3))));
  ASSERT_OK_AND_ASSIGN(const auto idle,
                       Factor(*client, Diagonal(2, 4), 2, Named("idle", absl::Hours(3))));
  const auto reason_gone = [&](const FactorDescription& factor) {
    return Reason(client->Describe(factor.handle).status());
  };
  for (int hour = 2; hour < 10; hour += 2) {
    daemon.failpoints().Advance(absl::Hours(2));
    ASSERT_THAT(SolveOnes(*client, used.handle, 2), crout::testing::IsOk()) << hour;
    EXPECT_EQ(reason_gone(idle), hour == 2 ? "" : "HANDLE_EXPIRED");
  }
  EXPECT_OK(client->Renew(used.handle, absl::Hours(20)));
  daemon.failpoints().Advance(absl::Hours(2));
  EXPECT_EQ(reason_gone(used), "HANDLE_EXPIRED");
}

TEST(CacheTest, TheServerSetsTheDefaultLease) {
  Daemon daemon({"--default-lease=30m", "--max-lease=2h"});
  const auto client = daemon.NewClient();
  ASSERT_OK_AND_ASSIGN(const auto factor, Factor(*client, Diagonal(1, 1), 1));
  const absl::Time end = factor.lease_expire_time.value();
  EXPECT_GT(end, absl::Now() + absl::Minutes(29));
  EXPECT_LT(end, absl::Now() + absl::Minutes(31));
  EXPECT_EQ(client->Renew(factor.handle, absl::Hours(3)).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(CacheTest, OnlyTheOwnerGetsTheReason) {
  Daemon daemon;
  const auto owner = daemon.NewClient("owner");
  const auto other = daemon.NewClient("other");
  ASSERT_OK_AND_ASSIGN(const auto factor, Factor(*owner, Diagonal(2, 2), 2));
  // Other tenants get the same error for a valid, a released and an unknown handle.
  std::string never = factor.handle;
  never[0] = never[0] == 'a' ? 'b' : 'a';
  const auto unknown = other->Describe(never).status();
  const auto living = other->Describe(factor.handle).status();
  ASSERT_OK(owner->Release(factor.handle));
  const auto dead = other->Describe(factor.handle).status();
  for (const absl::Status& status : {unknown, living, dead}) {
    EXPECT_EQ(status.code(), StatusCode::kNotFound);
    EXPECT_EQ(Reason(status), "HANDLE_UNKNOWN") << status;
  }
  EXPECT_EQ(Reason(owner->Describe(factor.handle).status()), "HANDLE_RELEASED");
}

TEST(CacheTest, PagesCoverEveryFactorOnceNewestFirst) {
  Daemon daemon;
  const auto client = daemon.NewClient();
  const auto stub = daemon.NewStub();
  const auto a = Diagonal(1, 1);
  std::vector<std::string> made;
  for (int i = 0; i < 7; ++i) {
    ASSERT_OK_AND_ASSIGN(const auto factor, Factor(*client, a, 1, Named(i % 2 ? "odd" : "even")));
    made.insert(made.begin(), factor.handle);
  }
  for (const int page_size : {1, 3, 7, 0, 1000}) {
    std::vector<std::string> seen;
    v1::ListFactorsRequest request;
    request.set_page_size(page_size);
    do {
      grpc::ClientContext context;
      v1::ListFactorsResponse page;
      ASSERT_TRUE(stub->ListFactors(&context, request, &page).ok());
      EXPECT_LE(page.factors_size(), page_size > 0 ? page_size : 100);
      for (const auto& factor : page.factors()) seen.push_back(factor.handle());
      request.set_page_token(page.next_page_token());
      ASSERT_LE(seen.size(), made.size());
    } while (!request.page_token().empty());
    EXPECT_EQ(seen, made) << "page size " << page_size;
  }
  int odd = 0;
  ASSERT_OK(client->List("odd", [&](const FactorDescription& factor) {
    EXPECT_EQ(factor.name, "odd");
    return ++odd > 0;
  }));
  EXPECT_EQ(odd, 3);
  EXPECT_OK(daemon.NewClient("other")->List("", [](const FactorDescription&) {
    ADD_FAILURE() << "another tenant's factor";
    return true;
  }));
}

TEST(CacheTest, TheLeastRecentlyUsedFactorIsEvictedFirst) {
  // Three factors of 512 KiB with their matrices fit in the budget, together with the job that
  // makes one.
  Daemon daemon({"--host-budget=6MiB"});
  const auto client = daemon.NewClient();
  constexpr int64_t n = 256;
  std::vector<std::string> handles;
  const auto add = [&] {
    const auto factor = Factor(*client, Diagonal(n, static_cast<double>(handles.size() + 1)), n);
    ASSERT_OK(factor);
    handles.push_back(factor->handle);
    daemon.AwaitRest();  // the memory of this job must be free for the next
  };
  for (int i = 0; i < 3; ++i) add();
  ASSERT_OK(SolveOnes(*client, handles[0], n));  // the second is now the least recently used
  daemon.AwaitRest();
  while (!::testing::Test::HasFatalFailure() && client->Describe(handles[1]).ok() &&
         handles.size() < 40) {
    add();
  }
  const absl::Status gone = client->Describe(handles[1]).status();
  EXPECT_EQ(gone.code(), StatusCode::kNotFound);
  EXPECT_EQ(Reason(gone), "HANDLE_EVICTED") << gone;
  EXPECT_OK(client->Describe(handles[0]));
  // The remaining factors are correct.
  int living = 0;
  for (size_t i = 0; i < handles.size(); ++i) {
    const auto x = SolveOnes(*client, handles[i], n);
    if (!x.ok()) continue;
    ++living;
    EXPECT_DOUBLE_EQ(*x, 1.0 / static_cast<double>(i + 1));
  }
  EXPECT_GE(living, 2);
  EXPECT_THAT(daemon.ScrapeMetrics(),
              ::testing::ContainsRegex("crout_cache_evictions_total.* [1-9]"));
}

TEST(CacheTest, AMatrixLargerThanTheBudgetIsRefusedAndEvictsNothing) {
  Daemon daemon({"--host-budget=6MiB"});
  const auto client = daemon.NewClient();
  ASSERT_OK_AND_ASSIGN(const auto factor, Factor(*client, Diagonal(64, 2), 64));
  ASSERT_OK_AND_ASSIGN(const auto estimate, client->Estimate({.n = 1000}));
  EXPECT_FALSE(estimate.fits);
  const absl::Status status = Factor(*client, Diagonal(1000, 1), 1000).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Reason(status), "MEMORY_EXHAUSTED") << status;
  EXPECT_OK(client->Describe(factor.handle));
}

TEST(CacheTest, FullQueueIsRefusedWithADelay) {
  Daemon daemon({"--streams=1", "--queue-capacity=1"}, "croutd_test");
  const auto client = daemon.NewClient();
  // One job is held at the failpoint. Another fills the queue.
  daemon.failpoints().Hold("scheduler.job");
  std::vector<std::thread> callers;
  const auto submit = [&] {
    callers.emplace_back([client = daemon.NewClient()] {
      EXPECT_THAT(Factor(*client, Diagonal(2, 1), 2), crout::testing::IsOk());
    });
  };
  submit();
  daemon.failpoints().AwaitReached("scheduler.job");
  submit();
  EXPECT_TRUE(Eventually([&] { return HoldingsOf(*client).queue_depth == 1; }));
  const absl::Status status = Factor(*client, Diagonal(2, 1), 2).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(Reason(status), "QUEUE_FULL");
  EXPECT_GT(RetryDelay(status).value_or(absl::ZeroDuration()), absl::ZeroDuration());
  daemon.failpoints().Release("scheduler.job");
  for (std::thread& caller : callers) caller.join();
}

}  // namespace
}  // namespace crout::e2e::cache_test
