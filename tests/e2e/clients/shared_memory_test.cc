// SPDX-License-Identifier: Apache-2.0

// Tests the C++ client, and croutctl, with a server that offers shared memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "crout/series.h"
#include "tests/e2e/harness/daemon.h"
#include "tests/server/scrape.h"
#include "tests/support/status_matchers.h"

namespace crout::e2e::shared_memory_test {
namespace {

constexpr int64_t kN = 256;
constexpr double kBytes = kN * kN * sizeof(double);  // 512 KiB

void FillIdentity(double* a, double diagonal = 2) {
  std::fill_n(a, kN * kN, 0.0);
  for (int64_t i = 0; i < kN; ++i) a[i * (kN + 1)] = diagonal;
}

class SharedMemoryTest : public ::testing::Test {
 protected:
  double Sample(const std::string& name) const {
    return SampleOf(daemon_.ScrapeMetrics(), "crout_shared_memory_" + name).value_or(-1);
  }
  double received() const { return Sample("received_bytes_total"); }
  double sent() const { return Sample("sent_bytes_total"); }
  bool HasRegionsSoon(double count) const {
    return Eventually([&] { return Sample("regions") == count; });
  }
  static MatrixSource Source(const double* a) {
    return MatrixSource::Dense(absl::MakeConstSpan(a, kN * kN), kN, kN);
  }

  TempDir directory_;
  const Daemon daemon_{{"--listen=unix:" + directory_.File("socket"), "--max-shared-memory=64MiB"},
                       "croutd_test"};
  const std::shared_ptr<Client> client_ = daemon_.NewClient();
};

TEST_F(SharedMemoryTest, SendsAnAllocatedMatrixWithoutACopy) {
  std::shared_ptr<double[]> a = client_->Allocate<double>(kN * kN);
  FillIdentity(a.get());
  ASSERT_OK(client_->Factor(Source(a.get()), {}, {}));
  EXPECT_EQ(received(), kBytes);
  EXPECT_TRUE(HasRegionsSoon(1));
  a.reset();
  EXPECT_TRUE(HasRegionsSoon(0));
}

TEST_F(SharedMemoryTest, CopiesPayloadsAndSolutions) {
  std::vector<double> a(kN * kN);
  std::vector<double> b(kN * kN, 3.0);
  FillIdentity(a.data());
  const auto factor = client_->Factor(Source(a.data()), {}, {});
  ASSERT_OK(factor);
  for (int i = 1; i <= 3; ++i) {
    std::vector<double> x(kN * kN);
    SpanSink sink(absl::MakeSpan(x));
    ASSERT_OK(client_->Solve(factor->handle, Source(b.data()), {}, &sink));
    EXPECT_EQ(x, std::vector<double>(kN * kN, 1.5));
    EXPECT_EQ(received(), (1 + i) * kBytes);
    EXPECT_EQ(sent(), i * kBytes);
  }
  std::vector<double> x(kN * kN);
  SpanSink sink(absl::MakeSpan(x));
  FactorDescription made;
  ASSERT_OK(client_->FactorAndSolve(Source(a.data()), Source(b.data()), {}, &made, &sink));
  EXPECT_EQ(x, std::vector<double>(kN * kN, 1.5));
  EXPECT_EQ(received(), 6 * kBytes);
  EXPECT_EQ(sent(), 4 * kBytes);
}

TEST_F(SharedMemoryTest, SendsLargePayloadsInPieces) {
  constexpr int64_t kLarge = 1200;  // 11 MiB: two ranges
  std::vector<double> a(kLarge * kLarge);
  for (int64_t i = 0; i < kLarge; ++i) a[i * (kLarge + 1)] = 2;
  const auto factor =
      client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), kLarge, kLarge), {}, {});
  ASSERT_OK(factor);
  EXPECT_EQ(factor->info, 0);
  EXPECT_EQ(received(), static_cast<double>(a.size() * sizeof(double)));
}

TEST_F(SharedMemoryTest, RunsSeries) {
  std::vector<double> a(kN * kN);
  const std::vector<double> b(kN * kN, 3.0);
  Series series(client_, {});
  for (int step = 1; step <= 3; ++step) {
    FillIdentity(a.data(), step);
    std::vector<double> x(kN * kN);
    SpanSink sink(absl::MakeSpan(x));
    ASSERT_OK(series.Step(Source(a.data()), Source(b.data()), &sink));
    EXPECT_NEAR(x[0], 3.0 / step, 1e-6);
    EXPECT_EQ(sent(), step * kBytes);
  }
  EXPECT_EQ(received(), 6 * kBytes);
}

TEST_F(SharedMemoryTest, UsesMessagesForSmallPayloads) {
  const std::vector<double> a = {2, 0, 0, 2};
  ASSERT_OK(client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a), 2, 2), {}, {}));
  EXPECT_EQ(received(), 0);
  EXPECT_NE(client_->Allocate<double>(2), nullptr);
  EXPECT_EQ(Sample("regions"), 0);
}

TEST_F(SharedMemoryTest, ReturnsTheMemoryOfAClientThatIsKilled) {
  const std::string file = directory_.File("a.npy");
  // Version 1 of the npy format.
  std::string header = "{'descr': '<f8', 'fortran_order': True, 'shape': (256, 256), }";
  header.resize(117, ' ');
  header += '\n';
  std::vector<double> a(kN * kN);
  FillIdentity(a.data());
  WriteFile(file, std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header +
                      std::string(reinterpret_cast<const char*>(a.data()), a.size() * 8));
  daemon_.failpoints().Hold("scheduler.job");
  Process process(daemon_.CtlCommand({"factor", file}));
  daemon_.failpoints().AwaitReached("scheduler.job");
  EXPECT_TRUE(HasRegionsSoon(1));
  process.Signal(SIGKILL);
  EXPECT_EQ(process.Wait(), 128 + SIGKILL);
  daemon_.failpoints().Release("scheduler.job");
  EXPECT_TRUE(HasRegionsSoon(0));
  EXPECT_OK(client_->ServerInfo());
}

}  // namespace
}  // namespace crout::e2e::shared_memory_test
