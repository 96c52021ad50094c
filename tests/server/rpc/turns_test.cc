// SPDX-License-Identifier: Apache-2.0

// Tests that parsing of uploads and release of memory alternate between tenants: the work of a
// tenant does not delay a small request of another tenant.
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/timing/eventually.h"
#include "tests/support/timing/gate.h"

namespace crout::testing::turns_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Optional;

// Grid sizes whose analyses count as large and as small.
constexpr int64_t kLarge = 60, kSmall = 4;
// Number of threads for large analyses, and of calls that wait for them.
constexpr int kThreads = 2, kWaiting = 4;

class RpcTurnsTest : public RpcSparseTest {
 protected:
  using Stream = grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>;

  // A Factorize call of a tenant, with its whole payload.
  class Call {
   public:
    Call(RpcTurnsTest& test, const std::string& tenant, int64_t m) {
      context_.AddMetadata("crout-tenant", tenant);
      stream_ = test.stub().Factorize(&context_);
      const Triplets a = Grid(m);
      v1::FactorizeRequest request;
      *request.mutable_header() = test.Header(m * m, a);
      request.set_data(BytesOf(a));
      stream_->Write(request);
      stream_->WritesDone();
    }
    grpc::Status Finish() {
      v1::FactorizeResponse response;
      while (stream_->Read(&response)) {
        if (response.has_factor()) handle_ = response.factor().handle();
      }
      return stream_->Finish();
    }
    const std::string& handle() const { return handle_; }
    void Cancel() { context_.TryCancel(); }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<Stream> stream_;
    std::string handle_;
  };

  RpcTurnsTest() : RpcSparseTest({v1::ALGORITHM_MULTIFRONTAL}) { gate_.Close(); }
  void TearDown() override {
    gate_.Open();
    RpcSparseTest::TearDown();
  }

  void StartWithPlaces(size_t places) {
    Config config = SmallConfig();
    config.limits.queue_capacity = config.pool.scheduler.queue_capacity = places;
    config.pool.device_budget_bytes = config.pool.host_budget_bytes = size_t{256} << 20;
    FakeDeviceOptions options;
    options.has_sparse_ops = true;
    options.register_more = [this](Catalogue& catalogue) {
      catalogue.sparse_lus.push_back(Make(v1::ALGORITHM_MULTIFRONTAL));
    };
    StartServer(options, config);
  }
  // Holds all threads for large analyses at gate_ in calls of tenant A, and queues kWaiting more of
  // its calls.
  void FillWithLarge() {
    for (int i = 0; i < kThreads; ++i) {
      failpoints().Do("sparse.analyze", [this] { gate_.Pass(); });
      calls_.push_back(std::make_unique<Call>(*this, "A", kLarge));
      gate_.WaitUntilHeld(i + 1);
    }
    for (int i = 0; i < kWaiting; ++i) {
      calls_.push_back(std::make_unique<Call>(*this, "A", kLarge));
    }
    AwaitDepth(kWaiting);
  }
  void AwaitDepth(size_t depth) {
    const TaskScheduler& queue = *core().engine.devices.slots()[0]->preparing;
    WaitUntil([&] { return queue.load().queue_depth == depth; }, "the calls to wait");
  }
  // Holds all threads of the pool at gate_ in tasks of tenant A. Queues more of its tasks, which
  // would hold the threads at `rest`, and returns their number.
  int FillPool(ThreadPool& pool, Gate& rest) {
    for (int i = 0; i < pool.thread_count(); ++i) pool.Schedule("A", [this] { gate_.Pass(); });
    gate_.WaitUntilHeld(pool.thread_count());
    rest.Close();
    const int waiting = pool.thread_count() + 2;
    for (int i = 0; i < waiting; ++i) pool.Schedule("A", [&rest] { rest.Pass(); });
    return waiting;
  }
  // Each of the tasks that FillPool() has queued passes the gate once.
  void EndTasks(Gate& rest, int tasks) {
    rest.Open();
    WaitUntil([&] { return rest.arrivals() == tasks && rest.held() == 0; }, "the pool to be idle");
  }
  grpc::StatusCode Release(const std::string& tenant, const std::string& handle) {
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", tenant);
    context.set_deadline(absl::ToChronoTime(absl::Now() + kTestTimeout));
    v1::ReleaseFactorRequest request;
    request.set_handle(handle);
    v1::ReleaseFactorResponse response;
    return stub().ReleaseFactor(&context, request, &response).error_code();
  }
  void ExpectTheRestServed() {
    gate_.Open();
    for (const auto& call : calls_) {
      const grpc::Status status = call->Finish();
      EXPECT_TRUE(status.ok()) << status.error_message();
    }
  }

  Gate gate_;
  std::vector<std::unique_ptr<Call>> calls_;
};

TEST_F(RpcTurnsTest, ASmallCallOfAnotherTenantIsServedWhileLargeAnalysesHoldTheThreads) {
  StartWithPlaces(64);
  FillWithLarge();
  const grpc::Status status = Call(*this, "B", kSmall).Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(gate_.held(), kThreads);
  EXPECT_THAT(
      SampleOf(core().metrics.Scrape(), "crout_queue_depth{device=\"cuda:0\",queue=\"prepare\"}"),
      Optional(kWaiting));
  ExpectTheRestServed();
}

TEST_F(RpcTurnsTest, AFullQueueRefusesTheTenantThatFilledIt) {
  StartWithPlaces(kWaiting);
  FillWithLarge();
  const grpc::Status refused = Call(*this, "A", kLarge).Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_details(), HasSubstr("QUEUE_FULL"));
  EXPECT_THAT(refused.error_details(), HasSubstr("RetryInfo"));
  // A small request of another tenant is admitted, and the last call of A is dropped in its place.
  const grpc::Status status = Call(*this, "B", kSmall).Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
  const grpc::Status displaced = calls_.back()->Finish();
  EXPECT_EQ(displaced.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(displaced.error_details(), HasSubstr("QUEUE_FULL"));
  calls_.pop_back();
  // The queue for the device's jobs has kWaiting places, too. All analyses may end before it starts
  // a job, so at most kWaiting calls are served.
  while (calls_.size() > kWaiting) {
    calls_.back()->Cancel();
    EXPECT_EQ(calls_.back()->Finish().error_code(), grpc::StatusCode::CANCELLED);
    calls_.pop_back();
  }
  AwaitDepth(kWaiting - kThreads);
  ExpectTheRestServed();
}

TEST_F(RpcTurnsTest, AReleaseOfAnotherTenantDoesNotWaitForAllOfTheFirst) {
  StartWithPlaces(64);
  Call call(*this, "B", kSmall);
  ASSERT_TRUE(call.Finish().ok());
  Idle();
  const std::string unknown(26, 'a');
  ThreadPool& of_device = *core().engine.devices.slots()[0]->releasing;
  ThreadPool& of_none = core().releasing;
  const std::string of_slot = "crout_queue_depth{device=\"cuda:0\",queue=\"release\"}";
  const std::string of_server = "crout_queue_depth{device=\"none\",queue=\"release\"}";
  for (const bool on_device : {true, false}) {
    SCOPED_TRACE(on_device);
    Gate rest;
    ThreadPool& pool = on_device ? of_device : of_none;
    gate_.Close();
    const int tasks = FillPool(pool, rest);
    EXPECT_THAT(SampleOf(core().metrics.Scrape(), on_device ? of_slot : of_server),
                Optional(tasks));
    grpc::StatusCode code = grpc::StatusCode::UNKNOWN;
    std::thread releasing([&] { code = Release("B", on_device ? call.handle() : unknown); });
    WaitUntil([&] { return pool.waiting() == static_cast<size_t>(tasks) + 1; },
              "the release to wait");
    // In the order of arrival, tenant A would hold both threads at `rest`.
    gate_.Open();
    releasing.join();
    EXPECT_EQ(code, on_device ? grpc::StatusCode::OK : grpc::StatusCode::NOT_FOUND);
    EndTasks(rest, tasks);
    Idle();
  }
}

TEST_F(RpcTurnsTest, ATextOfAnotherTenantIsParsedInItsTurn) {
  StartWithPlaces(64);
  ThreadPool& pool = core().engine.parsers;
  Gate rest;
  const int tasks = FillPool(pool, rest);
  grpc::ClientContext context;
  context.AddMetadata("crout-tenant", "B");
  const auto stream = stub().Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Text();
  constexpr int kEntries = 200'000;  // more than a segment, less than two
  std::string text =
      absl::StrCat("%%MatrixMarket matrix coordinate real general\n2 2 ", kEntries, "\n");
  for (int i = 1; i < kEntries; ++i) text += "1 1 1\n";
  request.set_data(text);
  stream->Write(request);
  WaitUntil([&] { return pool.waiting("B", QueuePriority::kNormal) == 1; },
            "the first segment to wait");
  // In the order of arrival, tenant A would hold all threads at `rest` first.
  gate_.Open();
  rest.WaitUntilHeld(pool.thread_count());
  EXPECT_EQ(pool.waiting(), static_cast<size_t>(tasks - pool.thread_count()));
  EndTasks(rest, tasks);
  v1::FactorizeRequest last;
  last.set_data("2 2 1\n");
  stream->Write(last);
  stream->WritesDone();
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(RpcTurnsTest, NoCallNeedsANewThread) {
  StartWithPlaces(64);
  failpoints().Fail("thread.start", absl::ResourceExhaustedError("no thread left"));
  const int before = failpoints().reached("thread.start");
  for (const int64_t m : {kSmall, kLarge}) {
    const grpc::Status status = Call(*this, "A", m).Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
  }
  EXPECT_EQ(failpoints().reached("thread.start"), before);
}

TEST_F(RpcTurnsTest, AWaitingCallThatIsCancelledLeavesTheQueue) {
  StartWithPlaces(64);
  FillWithLarge();
  calls_.back()->Cancel();
  EXPECT_EQ(calls_.back()->Finish().error_code(), grpc::StatusCode::CANCELLED);
  AwaitDepth(kWaiting - 1);
  calls_.pop_back();
  ExpectTheRestServed();
}

}  // namespace
}  // namespace crout::testing::turns_test
