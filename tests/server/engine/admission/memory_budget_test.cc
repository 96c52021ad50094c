// SPDX-License-Identifier: Apache-2.0

#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/admission/memory_budget.h"
#include "server/engine/error.h"

namespace crout::memory_budget_test {
namespace {

using ::testing::Optional;

TEST(MemoryBudgetTest, GivesAllOrNothing) {
  MemoryBudget budget(100);
  auto first = budget.TryReserve(60);
  ASSERT_TRUE(first.has_value());
  EXPECT_FALSE(budget.TryReserve(41).has_value());
  EXPECT_EQ(budget.reserved(), 60u);
  auto second = budget.TryReserve(40);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ(budget.reserved(), 100u);
  EXPECT_TRUE(budget.TryReserve(0).has_value());
  first.reset();
  EXPECT_EQ(budget.reserved(), 40u);
}

TEST(MemoryBudgetTest, RefusesSumsThatWrap) {
  MemoryBudget budget(100);
  auto held = budget.TryReserve(50);
  EXPECT_FALSE(budget.TryReserve(SIZE_MAX - 20).has_value());
  EXPECT_EQ(budget.reserved(), 50u);
}

TEST(ReservationTest, MovesWithoutCountingTwice) {
  MemoryBudget budget(100);
  Reservation a = *budget.TryReserve(30);
  Reservation b = std::move(a);
  EXPECT_EQ(a.bytes(), 0u);  // NOLINT(bugprone-use-after-move): must be empty
  EXPECT_EQ(b.bytes(), 30u);
  EXPECT_EQ(budget.reserved(), 30u);
  Reservation c = *budget.TryReserve(50);
  c = std::move(b);
  EXPECT_EQ(budget.reserved(), 30u);
  c.Release();
  EXPECT_EQ(budget.reserved(), 0u);
}

// Counts bytes, up to a limit.
class CountingOwner final : public ReservationOwner {
 public:
  explicit CountingOwner(size_t limit) : limit_(limit) {}
  bool TryAdd(size_t bytes) noexcept override {
    if (bytes > limit_ - bytes_) return false;
    bytes_ += bytes;
    return true;
  }
  void Add(size_t bytes) noexcept override { bytes_ += bytes; }
  void Subtract(size_t bytes) noexcept override { bytes_ -= bytes; }
  size_t bytes() const { return bytes_; }

 private:
  const size_t limit_;
  size_t bytes_ = 0;
};

TEST(ReservationTest, CountsForItsOwner) {
  MemoryBudget budget(100);
  const auto alice = std::make_shared<CountingOwner>(90);
  const auto bob = std::make_shared<CountingOwner>(100);
  EXPECT_FALSE(budget.TryReserve(91, alice)) << "beyond the limit of the owner";
  EXPECT_EQ(budget.reserved(), 0u);
  Reservation a = *budget.TryReserve(80, alice);
  EXPECT_FALSE(budget.TryReserve(30, bob)) << "beyond the budget";
  EXPECT_EQ(bob->bytes(), 0u);
  Reservation part = a.Split(20);
  EXPECT_EQ(alice->bytes(), 80u);
  a.Shrink(50);
  EXPECT_EQ(alice->bytes(), 70u);
  Reservation b = *budget.TryReserve(10, bob);
  b.Absorb(std::move(part));
  EXPECT_EQ(alice->bytes(), 50u);
  EXPECT_EQ(bob->bytes(), 30u);
  b.Absorb(*budget.TryReserve(5));
  EXPECT_EQ(bob->bytes(), 35u);
  Reservation empty;
  empty.Absorb(std::move(a));
  EXPECT_EQ(alice->bytes(), 50u);
  b = std::move(empty);
  EXPECT_EQ(bob->bytes(), 0u);
  b.Release();
  EXPECT_EQ(alice->bytes(), 0u);
  EXPECT_EQ(budget.reserved(), 0u);
}

TEST(ReservationTest, ShrinksGrowsAndSplits) {
  MemoryBudget budget(100);
  Reservation a = *budget.TryReserve(80);
  a.Shrink(90);
  EXPECT_EQ(a.bytes(), 80u);
  a.Shrink(60);
  EXPECT_EQ(budget.reserved(), 60u);
  a.Absorb(*budget.TryReserve(10));
  EXPECT_EQ(budget.reserved(), 70u);
  {
    Reservation part = a.Split(25);
    EXPECT_EQ(part.bytes(), 25u);
    EXPECT_EQ(a.bytes(), 45u);
    EXPECT_EQ(budget.reserved(), 70u);
  }
  EXPECT_EQ(budget.reserved(), 45u);
  EXPECT_EQ(a.Split(1000).bytes(), 45u);
  EXPECT_EQ(budget.reserved(), 0u);
}

TEST(MemoryBudgetTest, NeverExceedsItsLimitUnderContention) {
  MemoryBudget budget(10);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget, t] {
      for (int i = 0; i < 5000; ++i) {
        auto reservation = budget.TryReserve(static_cast<size_t>(1 + (i + t) % 5));
        ASSERT_LE(budget.reserved(), budget.limit());
        if (reservation.has_value()) reservation->Shrink(1);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(budget.reserved(), 0u);
}

TEST(ReasonTest, IsAttachedToTheStatus) {
  const absl::Status plain = absl::UnavailableError("gone");
  EXPECT_EQ(ReasonOf(plain), std::nullopt);
  EXPECT_EQ(RetryAfterOf(plain), std::nullopt);
  const absl::Status status = WithRetryAfter(WithReason(plain, kReasonDraining), 0.25);
  EXPECT_THAT(ReasonOf(status), Optional(std::string("DRAINING")));
  EXPECT_THAT(RetryAfterOf(status), Optional(0.25));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "gone");
  EXPECT_THAT(ReasonOf(WithReason(status, kReasonDeviceLost)),
              Optional(std::string("DEVICE_LOST")));
}

}  // namespace
}  // namespace crout::memory_budget_test
