// SPDX-License-Identifier: Apache-2.0

// Tests that a failed allocation ends only the call that made it. Each test refuses one allocation,
// identified by its size, on a different kind of thread.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "kernels/io/sparse_matrix.h"
#include "kernels/util/allocation.h"
#include "kernels/util/thread_pool.h"
#include "server/rpc/core.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/rpc/series/series_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/memory/refused_allocations.h"
#include "tests/support/timing/gate.h"

// Constructors of protobuf messages leak earlier allocations if a later one throws.
extern "C" const char* __lsan_default_suppressions() {  // NOLINT
  return "leak:google::protobuf::\nleak:crout::v1::\n";
}

namespace crout::testing::memory_test {
namespace {

class RpcMemoryTest : public RpcTest {
 protected:
  // Returns the text of an n x n matrix with `lines` entries: the diagonal, then duplicates of
  // entry (1, 1).
  static std::string TextOf(int64_t n, int64_t lines) {
    std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real general\n", n, " ", n,
                                    " ", lines, "\n");
    for (int64_t i = 0; i < lines; ++i) {
      const int64_t at = i < n ? i + 1 : 1;
      absl::StrAppend(&text, at, " ", at, " 1\n");
    }
    return text;
  }

  grpc::Status FactorizeText(const std::string& text, v1::Factor* factor) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Text();
    return Factorize(header, text, factor);
  }

  // Expects that the call is refused if an allocation of `bytes` bytes fails, and that it succeeds
  // otherwise.
  void ExpectRefused(size_t bytes, const std::string& text) {
    const Holdings before = Idle();
    v1::Factor factor;
    RefuseSize(bytes);
    const grpc::Status status = FactorizeText(text, &factor);
    EXPECT_TRUE(StopRefusing()) << "nothing of that size was allocated";
    EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED) << status.error_message();
    ExpectHeldSoon(before);
    EXPECT_TRUE(FactorizeText(text, &factor).ok());
  }
};

TEST_F(RpcMemoryTest, OnTheReceivingThread) {
  StartServer();
  // The allocation is a segment of text with its terminator.
  ExpectRefused((size_t{1} << 20) + 1, TextOf(50, 200000));
}

TEST_F(RpcMemoryTest, OnTheParsingThread) {
  StartServer();
  ExpectRefused(12347 * sizeof(MatrixEntry), TextOf(50, 12347));
}

TEST_F(RpcMemoryTest, OnTheAssemblingThread) {
  StartServer();
  ExpectRefused((777 + 1) * sizeof(int64_t), TextOf(777, 777));
}

TEST_F(RpcMemoryTest, OnTheWorkerThread) {
  StartServer();
  constexpr int64_t kN = 301;
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const auto download = [&] {
    grpc::ClientContext context;
    v1::GetFactorsRequest request;
    request.set_handle(factor.handle());
    auto stream = stub().GetFactors(&context, request);
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  };
  const Holdings before = Idle();
  RefuseSize(kN * sizeof(int64_t));  // the allocation is the permutation
  EXPECT_EQ(download().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(StopRefusing());
  ExpectHeldSoon(before);
  EXPECT_TRUE(download().ok());
}

// Covers a call that waits for the result of another call with the same request_id.
TEST_F(RpcMemoryTest, OnTheThreadThatResumesAWaitingCall) {
  Config config = SmallConfig();
  config.call_log.calls = LogCalls::kNone;
  StartServer({}, config);
  const Holdings before = Held();
  const std::string id(113, 'r');  // no other allocation has this size
  v1::FactorizeRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(20, 20);
  request.mutable_header()->mutable_cache()->set_request_id(id);
  grpc::ClientContext first_context, second_context;
  auto first = stub().Factorize(&first_context);
  first->Write(request);
  WaitUntil([&] { return Held().uploads == 1; }, "the first");
  auto second = stub().Factorize(&second_context);
  second->Write(request);
  WaitUntil([&] { return core().engine.cache.request_ids().IsAwaited("default", id); },
            "the second");
  // Ends the first call, but blocks the threads that release its claim.
  const auto release = std::make_shared<Gate>();  // shared, because threads may leave it late
  release->Close();
  ThreadPool& releasing = *core().engine.devices.slots()[0]->releasing;
  for (int i = 0; i < releasing.thread_count(); ++i) {
    releasing.Schedule([release] { release->Pass(); });
  }
  release->WaitUntilHeld(releasing.thread_count());
  first_context.TryCancel();
  EXPECT_EQ(first->Finish().error_code(), grpc::StatusCode::CANCELLED);
  WaitUntil(
      [&] {
        return SampleOf(core().metrics.Scrape(),
                        "crout_requests_total{code=\"CANCELLED\",method=\"Factorize\"}") == 1;
      },
      "the first is done");
  RefuseSize(id.size() + 1);
  release->Open();
  EXPECT_EQ(second->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(StopRefusing());
  ExpectHeldSoon(before);
}

TEST_F(RpcMemoryTest, OnTheHousekeepingThread) {
  StartServer();
  constexpr int kAllocations = 20;  // more than housekeeping makes
  const uint64_t before = AbandonedTasks();
  for (int i = 0; i < kAllocations; ++i) {
    RefuseAfter(i, Threads::kThis);
    EXPECT_NO_THROW(components().Housekeep());
    StopRefusing();
  }
  EXPECT_GT(AbandonedTasks(), before);
}

// The memory of a call is released by a task that is scheduled in this way.
TEST(ThreadPoolMemoryTest, ATaskWithANodeIsScheduledWithoutMemory) {
  ThreadPool pool(1);
  ThreadPool::Node node("a tenant with a name that no string holds inline");
  const auto ran = std::make_shared<absl::Notification>();
  RefuseAfter(0, Threads::kThis);
  pool.Schedule(std::move(node), [ran] { ran->Notify(); });
  EXPECT_FALSE(StopRefusing());
  ran->WaitForNotification();
}

TEST_F(RpcMemoryTest, OfTheMemoryPool) {
  StartServer();
  constexpr int64_t kN = 20;
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const Holdings before = Idle();
  Solved solved;
  failpoints().Fail("memory.allocate", absl::ResourceExhaustedError("refused"), 1);
  const grpc::Status status = Solve(factor.handle(), std::vector<double>(kN, 1.0), &solved);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectHeldSoon(before);
  EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kN, 1.0), &solved).ok());
}

TEST_F(RpcMemoryTest, TheHostsBudgetIsInTheMetrics) {
  StartServer({}, SmallConfig());
  MemoryBudget& budget = core().engine.devices.host_budget();
  const size_t before = budget.reserved();
  const auto held = budget.TryReserve(4096);
  ASSERT_TRUE(held.has_value());
  const std::string text = core().metrics.Scrape();
  EXPECT_THAT(SampleOf(text, "crout_host_memory_bytes{kind=\"limit\"}"),
              ::testing::Optional(budget.limit()));
  EXPECT_THAT(SampleOf(text, "crout_host_memory_bytes{kind=\"reserved\"}"),
              ::testing::Optional(before + 4096));
}

// A stream has five steps: a text, another text, new values, only a right-hand side, and a
// right-hand side with an initial guess. Each allocation of each step is refused in turn. The call
// may leave its factor, but nothing else.
class RpcSeriesMemoryTest : public RpcSeriesTest {
 protected:
  static constexpr int kSteps = 5;

  // `entry_digest` is the digest of the previous matrix.
  static v1::SolveSeriesRequest Request(int step, const std::string& entry_digest) {
    v1::SolveSeriesRequest request;
    if (step == 0) request.mutable_header()->set_strategy(v1::SERIES_STRATEGY_REUSE);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    request.set_rhs_data(Bytes(std::vector<double>(kN, 1.0)));
    if (step < 2) {
      std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real symmetric\n", kN, " ",
                                      kN, " ", 2 * kN, "\n");
      for (int64_t i = 1; i <= kN; ++i) {
        absl::StrAppend(&text, i, " ", i, " ", 4 + step, "\n");
        absl::StrAppend(&text, i, " ", std::max<int64_t>(1, i - 1), " 1\n");
      }
      *request.mutable_header()->mutable_matrix() = Text();
      request.set_data(text);
    } else if (step == 2) {
      request.mutable_header()->mutable_change()->set_values(2 * kN);
      request.mutable_header()->mutable_change()->set_entry_digest(entry_digest);
      std::vector<double> values;
      for (int64_t i = 0; i < kN; ++i) values.insert(values.end(), {6.0, 1.0});
      request.set_data(Bytes(values));
    } else if (step == 4) {
      *request.mutable_header()->mutable_x0() = Dense(kN, 1);
      request.set_x0_data(request.rhs_data());
    }
    return request;
  }

  // Runs steps 0 to `last`, and calls `refuse` before step `last`. Returns whether this step was
  // solved. Expects RESOURCE_EXHAUSTED if it was not, and that the call leaves nothing but its
  // factor.
  bool StepIsSolved(int last, const std::function<void()>& refuse) {
    const Holdings before = Idle();
    bool solved = true;
    {
      Series series(stub());
      Answer answer;
      for (int step = 0; step <= last && solved; ++step) {
        if (step == last) refuse();
        solved =
            series.Write(Request(step, answer.result.entry_digest())) && series.Receive(&answer);
        EXPECT_TRUE(!solved || answer.result.accurate());
        EXPECT_TRUE(solved || step == last) << step;
      }
      const grpc::Status status = series.Finish();
      EXPECT_EQ(status.error_code(),
                solved ? grpc::StatusCode::OK : grpc::StatusCode::RESOURCE_EXHAUSTED)
          << status.error_message();
    }
    WaitUntil([&] { return Idle().factors <= before.factors + 1; }, "the stream's own parts to go");
    for (const v1::Factor& factor : Listed()) {
      v1::ReleaseFactorRequest request;
      request.set_handle(factor.handle());
      v1::ReleaseFactorResponse response;
      grpc::ClientContext context;
      EXPECT_TRUE(stub().ReleaseFactor(&context, request, &response).ok());
    }
    ExpectHeldSoon(before);
    return solved;
  }

  void Start() {
    FakeDeviceOptions options;
    options.has_sparse_ops = true;
    Config config = SmallConfig();
    config.call_log.calls = LogCalls::kNone;
    StartServer(options, config);
  }
};

TEST_F(RpcSeriesMemoryTest, RefusedDeviceAllocationsEndTheStep) {
  Start();
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    int refused = 0;
    while (!StepIsSolved(step, [&] { device().counting_memory().FailAllocations(1, refused); })) {
      ++refused;
      ASSERT_FALSE(HasFailure()) << refused;
    }
    device().counting_memory().FailAllocations(0);
    EXPECT_GE(refused, step < 3 ? 6 : 3);
  }
}

TEST_F(RpcSeriesMemoryTest, RefusedHeapAllocationsEndTheStep) {
  Start();
  for (int step = 0; step < kSteps; ++step) {
    SCOPED_TRACE(absl::StrCat("step ", step));
    int refused = 0;
    for (bool tried = true; tried; ++refused) {
      StepIsSolved(step, [&] {
        failpoints().Do("series.step", [&] { RefuseAfter(refused, Threads::kThis); });
      });
      tried = StopRefusing();
      ASSERT_FALSE(HasFailure()) << refused;
    }
    EXPECT_GE(refused, 10);
  }
}

TEST_F(RpcSeriesMemoryTest, ARefusedValueMapEndsTheStep) {
  Start();
  // The map has a source for each diagonal entry, another for the first, which is given twice, and
  // two for each of the kN - 1 other entries because of the symmetry.
  const int64_t sources = 2 * kN + kN - 1;
  EXPECT_FALSE(StepIsSolved(0, [&] { RefuseSize(sources * sizeof(uint32_t)); }));
  EXPECT_TRUE(StopRefusing());
}

TEST_F(RpcMemoryTest, CallsAreChargedAsLongAsTheyLive) {
  constexpr int kFit = 3;
  Config config = SmallConfig();
  config.call_memory_bytes = kFit * ServerCore::kCallBytes;
  StartServer({}, config);
  const auto open = [&](grpc::ClientContext* context) { return stub().Factorize(context); };
  grpc::ClientContext contexts[kFit + 2];
  std::vector<
      std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>>>
      calls;
  for (int i = 0; i < kFit; ++i) {
    calls.push_back(open(&contexts[i]));
    WaitUntil([&] { return core().call_memory.reserved() == (i + 1) * ServerCore::kCallBytes; },
              "charged");
  }
  const grpc::Status refused = open(&contexts[kFit])->Finish();
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(refused.error_message().find("use all 96 KiB"), std::string::npos);
  contexts[0].TryCancel();
  calls[0]->Finish();
  EXPECT_THAT(SampleOf(core().metrics.Scrape(), "crout_call_memory_bytes{kind=\"limit\"}"),
              ::testing::Optional(kFit * ServerCore::kCallBytes));
  EXPECT_THAT(SampleOf(core().metrics.Scrape(), "crout_call_memory_bytes{kind=\"reserved\"}"),
              ::testing::Optional(::testing::Ge((kFit - 1) * ServerCore::kCallBytes)));
  WaitUntil([&] { return core().call_memory.reserved() == (kFit - 1) * ServerCore::kCallBytes; },
            "given back");
  const auto last = open(&contexts[kFit + 1]);
  last->WritesDone();
  EXPECT_EQ(last->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT) << "taken";
  for (auto& context : contexts) context.TryCancel();
  for (int i = 1; i < kFit; ++i) calls[i]->Finish();
  WaitUntil([&] { return core().call_memory.reserved() == 0; }, "none left");
}

}  // namespace
}  // namespace crout::testing::memory_test
