// SPDX-License-Identifier: Apache-2.0

// Tests that the staging pool loses no block and calls back each waiting upload once.
#include "kernels/memory/staging_pool.h"

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/timing/gate.h"

namespace crout::staging_pool_test {
namespace {

using testing::Gate;

constexpr size_t kBlock = 4096;

// Waits for a callback. The callback shares ownership of its promise, because the waiting thread
// may continue before the callback returns.
class CallbackWaiter {
 public:
  std::function<void()> callback() const {
    return [promise = promise_] { promise->set_value(); };
  }
  // Returns false if the callback is not called within a minute.
  bool Await() { return future_.wait_for(std::chrono::minutes(1)) == std::future_status::ready; }

 private:
  const std::shared_ptr<std::promise<void>> promise_ = std::make_shared<std::promise<void>>();
  const std::future<void> future_ = promise_->get_future();
};

class StagingPoolTest : public ::testing::Test {
 protected:
  // Creates a pool whose copies can end only while `copies_` is open.
  void Make(int blocks, int copies_per_upload) {
    pool_.emplace(*host_->staging_memory().Allocate(kBlock * blocks),
                  StagingPoolOptions{kBlock, blocks, copies_per_upload},
                  [this](int) { copies_.Pass(); });
  }
  void TearDown() override { copies_.Open(); }

  using Upload = StagingPool::Upload;
  std::unique_ptr<Upload> NewUpload() { return std::make_unique<Upload>(*pool_); }
  static void NotExpected() { ADD_FAILURE() << "a block was at hand"; }

  // Sends all blocks of the pool. Their copies do not end before `copies_` opens.
  void Exhaust(Upload& upload, int blocks) {
    copies_.Close();
    for (int i = 0; i < blocks; ++i) {
      ASSERT_FALSE(upload.Take(&NotExpected).empty());
      upload.Send();
    }
  }
  // Takes a block, and waits for a copy to end if necessary. Returns false if no block becomes
  // free.
  static bool TakeOrWait(Upload& upload) {
    CallbackWaiter ready;
    if (!upload.Take(ready.callback()).empty()) return true;
    return ready.Await() && !upload.Take(&NotExpected).empty();
  }
  // Returns the number of blocks that new uploads can take. Returns the blocks to the pool.
  int Available() {
    std::vector<std::unique_ptr<Upload>> uploads;
    while (true) {
      uploads.push_back(NewUpload());
      if (uploads.back()->Take([] {}).empty()) return static_cast<int>(uploads.size()) - 1;
    }
  }

  const std::unique_ptr<Device> host_ = host::MakeDevice({.threads = 1});
  Gate copies_;
  std::optional<StagingPool> pool_;
};

TEST_F(StagingPoolTest, ReturnsTheSameBlockUntilItIsSent) {
  Make(2, 2);
  const auto upload = NewUpload();
  const auto block = upload->Take(&NotExpected);
  EXPECT_EQ(block.size(), kBlock);
  EXPECT_EQ(upload->Take(&NotExpected).data(), block.data());
  const int index = upload->block();
  upload->Send();
  EXPECT_EQ(upload->block(), -1);
  EXPECT_TRUE(TakeOrWait(*upload));
  EXPECT_GE(index, 0);
  EXPECT_GE(upload->block(), 0);
}

TEST_F(StagingPoolTest, ReservingAgainWhileWaitingLosesNoBlock) {
  Make(4, 4);
  auto sender = NewUpload();
  Exhaust(*sender, 4);
  auto waiting = NewUpload();
  ASSERT_TRUE(waiting->Take([] { ADD_FAILURE() << "was replaced"; }).empty());
  int calls = 0;
  ASSERT_TRUE(waiting->Take([&] { ++calls; }).empty());
  auto last = NewUpload();
  CallbackWaiter ready;
  ASSERT_TRUE(last->Take(ready.callback()).empty());
  copies_.Open();
  ASSERT_TRUE(ready.Await());  // earlier waiters are called first
  EXPECT_EQ(calls, 1);
  EXPECT_FALSE(waiting->Take(&NotExpected).empty());
  EXPECT_FALSE(last->Take(&NotExpected).empty());
  sender.reset();
  waiting.reset();
  last.reset();
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 0; i < 4; ++i) {
    uploads.push_back(NewUpload());
    ASSERT_TRUE(TakeOrWait(*uploads.back())) << i;
  }
  EXPECT_EQ(Available(), 0);
  uploads.clear();
  EXPECT_EQ(Available(), 4);
}

TEST_F(StagingPoolTest, LimitsTheBlocksInFlightOfOneUpload) {
  Make(4, 2);
  const auto upload = NewUpload();
  Exhaust(*upload, 2);
  CallbackWaiter ready;
  ASSERT_TRUE(upload->Take(ready.callback()).empty());
  EXPECT_FALSE(pool_->scarce());
  EXPECT_EQ(Available(), 2);
  copies_.Open();
  ASSERT_TRUE(ready.Await());
  EXPECT_FALSE(upload->Take(&NotExpected).empty());
}

TEST_F(StagingPoolTest, RemovesAbandonedWaits) {
  Make(1, 1);
  const auto sender = NewUpload();
  Exhaust(*sender, 1);
  auto first = NewUpload();
  const auto held = std::make_shared<int>(0);
  ASSERT_TRUE(first->Take([held] { ADD_FAILURE() << *held << ": gone"; }).empty());
  const auto second = NewUpload();
  CallbackWaiter ready;
  ASSERT_TRUE(second->Take(ready.callback()).empty());
  EXPECT_EQ(held.use_count(), 2);
  first.reset();
  EXPECT_EQ(held.use_count(), 1);
  copies_.Open();
  ASSERT_TRUE(ready.Await());
  EXPECT_FALSE(second->Take(&NotExpected).empty());
}

TEST_F(StagingPoolTest, ReturnedBlocksWakeWaitingUpload) {
  Make(1, 1);
  auto first = NewUpload();
  ASSERT_FALSE(first->Take(&NotExpected).empty());
  EXPECT_TRUE(pool_->scarce());
  const auto second = NewUpload();
  CallbackWaiter returned;
  ASSERT_TRUE(second->Take(returned.callback()).empty());
  first->Return();
  ASSERT_TRUE(returned.Await());
  ASSERT_FALSE(second->Take(&NotExpected).empty());
  CallbackWaiter given_up;
  ASSERT_TRUE(first->Take(given_up.callback()).empty());
  second->Return();
  ASSERT_TRUE(given_up.Await());
}

TEST_F(StagingPoolTest, AllowsDestroyingAnUploadInItsCallback) {
  Make(1, 1);
  auto first = NewUpload();
  ASSERT_FALSE(first->Take(&NotExpected).empty());
  auto second = NewUpload();
  CallbackWaiter gone;
  ASSERT_TRUE(second
                  ->Take([&second, tell = gone.callback()] {
                    second.reset();
                    tell();
                  })
                  .empty());
  first.reset();
  ASSERT_TRUE(gone.Await());
  EXPECT_FALSE(NewUpload()->Take(&NotExpected).empty());
}

TEST_F(StagingPoolTest, DestructorWaitsForCopies) {
  Make(2, 2);
  auto upload = NewUpload();
  Exhaust(*upload, 2);
  upload.reset();
  copies_.WaitUntilHeld();
  copies_.Open();
  pool_.reset();
  EXPECT_EQ(copies_.arrivals(), 2);
}

}  // namespace
}  // namespace crout::staging_pool_test
