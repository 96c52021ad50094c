// SPDX-License-Identifier: Apache-2.0

// Tests the memory socket: its protocol, its limits, and clients that violate them.
#include "server/net/memory_listener.h"

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/util/mutex.h"
#include "tests/support/peers/memory_peer.h"
#include "tests/support/status_matchers.h"
#include "tests/support/timing/eventually.h"

namespace crout::memory_listener_test {
namespace {

using ::crout::testing::Eventually;
using ::crout::testing::MemoryConnection;
using ::crout::testing::MemoryFile;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr size_t kBytes = 4096;
const std::string kId(16, 'i');

// Takes the place of SharedRegions.
class Offers {
 public:
  MemoryListener::Map function() {
    return [this](MemoryListener::Request request, MemoryListener::Done done) {
      MutexLock lock(&mutex_);
      size_ = request.size;
      user_ = request.user;
      gpu_ = request.gpu;
      ++count_;
      if (!request.gpu.empty()) {
        return std::move(done)(
            MemoryListener::Grant{kId, region_, gpu_memory_.Duplicate(), 2 * request.size});
      }
      if (held_) {
        waiting_ = std::move(done);
        return;
      }
      std::move(done)(MemoryListener::Grant{kId, region_});
    };
  }
  void Hold() {
    MutexLock lock(&mutex_);
    held_ = true;
  }
  void Grant() {
    MutexLock lock(&mutex_);
    std::move (*waiting_)(MemoryListener::Grant{kId, region_});
    waiting_.reset();
  }
  int count() {
    MutexLock lock(&mutex_);
    return count_;
  }
  uint64_t size() {
    MutexLock lock(&mutex_);
    return size_;
  }
  std::string gpu() {
    MutexLock lock(&mutex_);
    return gpu_;
  }
  const MemoryFile& gpu_memory() const { return gpu_memory_; }
  uid_t user() {
    MutexLock lock(&mutex_);
    return user_;
  }
  // Number of references to the region, without the one of this object.
  int64_t uses() const { return region_.use_count() - 1; }

 private:
  const std::shared_ptr<const int> region_ = std::make_shared<const int>(0);
  const MemoryFile gpu_memory_{kBytes};
  Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t size_ ABSL_GUARDED_BY(mutex_) = 0;
  uid_t user_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string gpu_ ABSL_GUARDED_BY(mutex_);
  std::optional<MemoryListener::Done> waiting_ ABSL_GUARDED_BY(mutex_);
};

class MemoryListenerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto listener = MemoryListener::Bind(path_, offers_.function());
    ASSERT_OK(listener);
    listener_ = *std::move(listener);
    listener_->Start();
  }
  // Sends `message` with `files` on a new connection. Returns the text of the refusal.
  std::string Refusal(const std::string& message, const std::vector<int>& files) {
    const MemoryConnection connection(path_);
    connection.Send(message, files);
    const std::string reply = connection.Receive();
    EXPECT_THAT(reply, StartsWith("\1"));
    EXPECT_EQ(connection.Receive(), "");
    return reply;
  }

  const std::string path_ = ::testing::TempDir() + "crout-memory-" + std::to_string(getpid());
  Offers offers_;
  std::unique_ptr<MemoryListener> listener_;
};

TEST_F(MemoryListenerTest, GrantsARegionUntilTheConnectionEnds) {
  const MemoryFile file(kBytes);
  {
    const MemoryConnection connection(path_);
    EXPECT_EQ(connection.Share(file), kId);
    EXPECT_EQ(offers_.size(), kBytes);
    EXPECT_EQ(offers_.user(), getuid());
    EXPECT_EQ(offers_.uses(), 1);
  }
  EXPECT_TRUE(Eventually([&] { return offers_.uses() == 0; }));
  EXPECT_EQ(listener_->refused(), 0);
}

TEST_F(MemoryListenerTest, RefusesOffersThatViolateTheProtocol) {
  const MemoryFile file(kBytes);
  const std::string good = std::string("CROUTM1", 8) + std::string(8, '\1');
  EXPECT_THAT(Refusal("hello", {file.get()}), HasSubstr("the offer is not 16 bytes"));
  EXPECT_THAT(Refusal("x" + good.substr(1), {file.get()}), HasSubstr("the offer is not 16 bytes"));
  EXPECT_THAT(Refusal(good + "x", {file.get()}), HasSubstr("the offer is not 16 bytes"));
  EXPECT_THAT(Refusal(good, {}), HasSubstr("has 0 file descriptors. Send exactly one"));
  EXPECT_THAT(Refusal(good, {file.get(), file.get()}), HasSubstr("has 2 file descriptors"));
  EXPECT_THAT(Refusal(good, std::vector<int>(100, file.get())), HasSubstr("the offer is not"));
  // Requests for GPU memory have a UUID and no descriptor.
  const std::string gpu = std::string("CROUTG1", 8) + std::string(8, '\1');
  const std::string uuid(16, 'u');
  EXPECT_THAT(Refusal(gpu, {}), HasSubstr("or 32 that start with CROUTG1"));
  EXPECT_THAT(Refusal(gpu + uuid + "x", {}), HasSubstr("the offer is not"));
  EXPECT_THAT(Refusal(gpu + uuid, {file.get()}), HasSubstr("Send exactly none"));
  EXPECT_EQ(offers_.count(), 0);
  EXPECT_EQ(listener_->refused(), 9);
}

TEST_F(MemoryListenerTest, PassesGpuMemoryToTheClient) {
  const std::string uuid("0123456789abcdef");
  {
    const MemoryConnection connection(path_);
    connection.RequestGpu(uuid, kBytes);
    OwnedFile file;
    const std::string answer = connection.Receive(&file);
    EXPECT_EQ(answer, std::string(1, '\0') + kId + std::string("\0\x20\0\0\0\0\0\0", 8));
    EXPECT_EQ(offers_.gpu(), uuid);
    EXPECT_EQ(offers_.size(), kBytes);
    EXPECT_EQ(offers_.uses(), 1);
    offers_.gpu_memory().Write("shared");
    std::string read(6, '\0');
    EXPECT_EQ(pread(file.get(), read.data(), read.size(), 0), 6);
    EXPECT_EQ(read, "shared");
  }
  EXPECT_TRUE(Eventually([&] { return offers_.uses() == 0; }));
}

TEST_F(MemoryListenerTest, ClosesAConnectionThatSendsMoreThanItsOffer) {
  const MemoryFile file(kBytes);
  const MemoryConnection connection(path_);
  EXPECT_EQ(connection.Share(file), kId);
  connection.Offer(file.get(), kBytes);
  EXPECT_EQ(connection.Receive(), "");
  EXPECT_TRUE(Eventually([&] { return offers_.uses() == 0; }));
  EXPECT_EQ(offers_.count(), 1);
}

TEST_F(MemoryListenerTest, DropsTheRegionOfAClientThatLeftBeforeTheGrant) {
  offers_.Hold();
  const MemoryFile file(kBytes);
  {
    const MemoryConnection connection(path_);
    connection.Offer(file.get(), kBytes);
    EXPECT_TRUE(Eventually([&] { return offers_.count() == 1; }));
  }
  // The listener has handled the end of the first connection once it has served another one.
  EXPECT_NE(Refusal("hello", {}), "");
  offers_.Grant();
  EXPECT_TRUE(Eventually([&] { return offers_.uses() == 0; }));
}

TEST_F(MemoryListenerTest, AllowsAGrantAfterItsEnd) {
  offers_.Hold();
  const MemoryFile file(kBytes);
  const MemoryConnection connection(path_);
  connection.Offer(file.get(), kBytes);
  EXPECT_TRUE(Eventually([&] { return offers_.count() == 1; }));
  listener_.reset();
  offers_.Grant();
  EXPECT_EQ(offers_.uses(), 0);
  EXPECT_EQ(connection.Receive(), "");
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(MemoryListenerTest, LimitsTheConnectionsOfAUser) {
  constexpr size_t kQuarter = MemoryListener::kMaxConnections / 4;
  const MemoryFile file(kBytes);
  std::vector<MemoryConnection> connections;
  for (size_t i = 0; i < kQuarter; ++i) {
    EXPECT_EQ(connections.emplace_back(path_).Share(file), kId);
  }
  EXPECT_EQ(MemoryConnection(path_).Receive(), "");
  EXPECT_EQ(listener_->refused(), 1);
  connections.pop_back();
  EXPECT_TRUE(Eventually([&] { return offers_.uses() < static_cast<int64_t>(kQuarter); }));
  EXPECT_EQ(MemoryConnection(path_).Share(file), kId);
}

TEST_F(MemoryListenerTest, RefusesAPathWithALiveListener) {
  EXPECT_TRUE(absl::IsUnavailable(MemoryListener::Bind(path_, offers_.function()).status()));
}

}  // namespace
}  // namespace crout::memory_listener_test
