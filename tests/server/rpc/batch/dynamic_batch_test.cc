// SPDX-License-Identifier: Apache-2.0

// Tests dynamic batching: small requests that wait at the same time run as one batch, with the same
// results as if run alone.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::dynamic_batch_test {
namespace {

using grpc::StatusCode;

class RpcDynamicBatchTest : public RpcBatchTest {
 protected:
  void SetUp() override { Start(DynamicBatchConfig()); }
  static Config DynamicBatchConfig() {
    Config config = SmallConfig();
    config.pool.scheduler.queue_capacity = config.limits.queue_capacity = 32;
    config.limits.batching_max_order = 64;
    config.limits.max_n = 16384;  // lower precisions begin at order 8192
    config.pool.scheduler.max_batch_jobs = 16;
    return config;
  }

  // A call on a separate thread.
  struct Call {
    grpc::ClientContext context;
    grpc::Status status;
    v1::Factor factor;
    Solved solved;
    std::thread thread;
  };
  using Work = std::function<void(Call&)>;

  std::unique_ptr<Call> Begin(const Work& work) {
    auto call = std::make_unique<Call>();
    call->thread = std::thread([work, call = call.get()] { work(*call); });
    return call;
  }
  static void Join(Call& call) {
    if (call.thread.joinable()) call.thread.join();
  }
  // Holds a call within its batch. Later calls wait for it.
  void HoldTheStream() {
    failpoints().Hold("dynamic_batch.run");
    const int before = failpoints().reached("dynamic_batch.run");
    first_ = Begin(Factor(3, 99));
    failpoints().AwaitReached("dynamic_batch.run", before + 1);
  }
  void AwaitQueued(size_t jobs) {
    WaitUntil([&] { return Held().queue_depth == jobs; }, "the calls are queued");
  }
  void ReleaseStream() {
    failpoints().Release("dynamic_batch.run");
    Join(*first_);
    EXPECT_TRUE(first_->status.ok()) << first_->status.error_message();
  }

  Work Factor(int64_t n, int seed, v1::Algorithm algorithm = v1::ALGORITHM_UNSPECIFIED) {
    return [this, n, seed, algorithm](Call& call) {
      v1::FactorizeHeader header;
      *header.mutable_matrix() = Dense(n, n);
      header.mutable_options()->set_algorithm(algorithm);
      call.status = Send(header, Bytes(Matrix(n, seed)), call);
    };
  }
  grpc::Status Send(const v1::FactorizeHeader& header, const std::string& data, Call& call) {
    auto stream = stub().Factorize(&call.context);
    v1::FactorizeRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) call.factor = response.factor();
    }
    return stream->Finish();
  }
  Work SolveWith(const std::string& handle, int64_t n) {
    return [this, handle, n](Call& call) {
      call.status = Solve(handle, std::vector<double>(n, 1), &call.solved);
    };
  }
  Work Both(int64_t n, std::vector<double> a, std::vector<double> b) {
    return [this, n, a = std::move(a), b = std::move(b)](Call& call) {
      v1::FactorizeAndSolveHeader header;
      *header.mutable_matrix() = Dense(n, n);
      *header.mutable_rhs() = Dense(n, static_cast<int64_t>(b.size()) / n);
      const SolvedAtOnce answer = FactorizeAndSolve(header, Bytes(a), Bytes(b));
      call.status = answer.status;
      call.factor = answer.factor;
      call.solved.result = answer.result;
      call.solved.x.resize(answer.data.size() / sizeof(double));
      std::copy_n(answer.data.data(), answer.data.size(),
                  reinterpret_cast<char*>(call.solved.x.data()));
    };
  }

  double BatchedCalls(const std::string& what) {
    return SampleOf(core().metrics.Scrape(),
                    "crout_dynamic_batch_size_requests_" + what + "{device=\"cuda:0\"}")
        .value_or(0);
  }

  std::unique_ptr<Call> first_;
};

TEST_F(RpcDynamicBatchTest, CallsOfAllKindsRunTogetherWithIdenticalBits) {
  v1::Factor kept;
  ASSERT_TRUE(Factorize(30, &kept, 7).ok());
  EXPECT_EQ(kept.algorithm(), v1::ALGORITHM_IRR_LU);
  const std::vector<double> b = RandomMatrix(20, 2, 5);
  const std::vector<Work> works = {SolveWith(kept.handle(), 30), Both(20, Matrix(20, 3), b),
                                   Factor(64, 4), Both(1, {2}, {4}),
                                   Factor(40, 5, v1::ALGORITHM_IRR_LU)};
  std::vector<std::unique_ptr<Call>> alone, together;
  for (const Work& work : works) {
    alone.push_back(Begin(work));
    Join(*alone.back());
  }
  EXPECT_EQ(BatchedCalls("count"), 6);
  EXPECT_EQ(BatchedCalls("sum"), 6);
  HoldTheStream();
  for (const Work& work : works) together.push_back(Begin(work));
  AwaitQueued(works.size());
  ReleaseStream();
  for (size_t k = 0; k < works.size(); ++k) {
    SCOPED_TRACE(k);
    Join(*together[k]);
    ASSERT_TRUE(together[k]->status.ok()) << together[k]->status.error_message();
    EXPECT_EQ(together[k]->solved.x, alone[k]->solved.x);
    EXPECT_EQ(together[k]->factor.quality(), alone[k]->factor.quality());
    EXPECT_EQ(together[k]->factor.pivot_growth(), alone[k]->factor.pivot_growth());
  }
  EXPECT_EQ(BatchedCalls("count"), 6 + 2);
  EXPECT_EQ(BatchedCalls("sum"), 6 + 1 + 5);
  EXPECT_LT(BackwardError(Matrix(20, 3), 20, Op::kNone, together[1]->solved.x, b, 2), 1e-14);
  EXPECT_EQ(together[3]->solved.x, std::vector<double>{2});
  // A factor from a batch can be used like any other.
  Solved solved;
  const HostMatrix ones(64, 1);
  ASSERT_TRUE(Solve(together[2]->factor.handle(), ones, &solved).ok());
  EXPECT_LT(BackwardError(Matrix(64, 4), 64, Op::kNone, solved.x, ones, 1), 1e-14);
  EXPECT_LT(solved.result.backward_error(), 1e-14);
}

TEST_F(RpcDynamicBatchTest, ACallWithANamedMethodRunsAlone) {
  HoldTheStream();
  std::vector<std::unique_ptr<Call>> calls;
  for (const auto algorithm :
       {v1::ALGORITHM_UNSPECIFIED, v1::ALGORITHM_GETRF, v1::ALGORITHM_UNSPECIFIED}) {
    calls.push_back(Begin(Factor(8, static_cast<int>(calls.size()), algorithm)));
    AwaitQueued(calls.size());
  }
  ReleaseStream();
  for (const auto& call : calls) {
    Join(*call);
    ASSERT_TRUE(call->status.ok()) << call->status.error_message();
  }
  EXPECT_EQ(calls[0]->factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_EQ(calls[1]->factor.algorithm(), v1::ALGORITHM_GETRF);
  EXPECT_EQ(calls[2]->factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_EQ(BatchedCalls("count"), 2);
  EXPECT_EQ(BatchedCalls("sum"), 1 + 2);
}

TEST_F(RpcDynamicBatchTest, ErrorsAndCancellationsAffectOnlyTheirCall) {
  std::vector<double> nan = Matrix(8, 1);
  nan[9] = std::numeric_limits<double>::quiet_NaN();
  HoldTheStream();
  auto good = Begin(Both(8, Matrix(8, 1), HostMatrix(8, 1)));
  auto bad = Begin(Both(8, nan, HostMatrix(8, 1)));
  auto singular = Begin(Both(2, {1, 2, 2, 4}, {1, 1}));
  auto cancelled = Begin(Factor(8, 2));
  auto kept = Begin(Factor(8, 3));
  AwaitQueued(5);
  cancelled->context.TryCancel();
  AwaitQueued(4);
  ReleaseStream();
  for (auto* call : {good.get(), bad.get(), singular.get(), cancelled.get(), kept.get()}) {
    Join(*call);
  }
  EXPECT_TRUE(good->status.ok()) << good->status.error_message();
  EXPECT_TRUE(kept->status.ok()) << kept->status.error_message();
  ExpectRefused(bad->status, StatusCode::INVALID_ARGUMENT, "row 1, column 1");
  ExpectRefused(singular->status, StatusCode::FAILED_PRECONDITION, "pivot 2");
  EXPECT_EQ(singular->factor.info(), 2);
  EXPECT_EQ(cancelled->status.error_code(), StatusCode::CANCELLED);
  EXPECT_EQ(Held().factors, before_.factors + 2);
}

TEST_F(RpcDynamicBatchTest, ACallCancelledWhileItsBatchRunsEndsAlone) {
  // Two calls form a batch if they are queued while the only stream runs another job.
  device().factor_gate().Close();
  auto blocker = Begin([this](Call& call) { call.status = Factorize(100, &call.factor); });
  device().factor_gate().WaitUntilHeld();
  auto cancelled = Begin(Factor(8, 2));
  auto stays = Begin(Factor(8, 3));
  AwaitQueued(2);
  failpoints().Hold("dynamic_batch.run");
  device().factor_gate().Open();
  failpoints().AwaitReached("dynamic_batch.run");
  cancelled->context.TryCancel();
  Join(*cancelled);
  EXPECT_EQ(cancelled->status.error_code(), StatusCode::CANCELLED);
  WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) == 1; }, "the server knows");
  failpoints().Release("dynamic_batch.run");
  Join(*stays);
  Join(*blocker);
  EXPECT_TRUE(stays->status.ok()) << stays->status.error_message();
  EXPECT_EQ(BatchedCalls("sum"), 2);
  Idle();
  EXPECT_EQ(Held().factors, before_.factors + 2);
}

TEST_F(RpcDynamicBatchTest, ABatchStopsOnceAllItsCallsAreCancelled) {
  failpoints().Hold("dynamic_batch.run");
  auto call = Begin(Factor(8, 2));
  failpoints().AwaitReached("dynamic_batch.run");
  call->context.TryCancel();
  Join(*call);
  EXPECT_EQ(call->status.error_code(), StatusCode::CANCELLED);
  WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) == 1; }, "the server knows");
  failpoints().Release("dynamic_batch.run");
  ExpectHeldSoon(before_);
}

TEST_F(RpcDynamicBatchTest, ADeadlineInTheQueueIsKept) {
  HoldTheStream();
  auto late = std::make_unique<Call>();
  late->context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(200));
  Factor(8, 1)(*late);
  EXPECT_EQ(late->status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  ReleaseStream();
}

TEST_F(RpcDynamicBatchTest, AFailureOfTheBatchFailsEveryCall) {
  failpoints().Fail("dynamic_batch.run", absl::InternalError("made up"), 1);
  auto call = Begin(Factor(8, 1));
  Join(*call);
  EXPECT_EQ(call->status.error_code(), StatusCode::INTERNAL);
  ExpectHeldSoon(before_);
}

TEST_F(RpcDynamicBatchTest, MatricesThatNeedScalingAreFactoredAlone) {
  const std::vector<double> badly_scaled = {1e-12, 2e3, 2e-12, 1e3};
  auto scaled = Begin(Both(2, badly_scaled, {1, 1}));
  Join(*scaled);
  ASSERT_TRUE(scaled->status.ok()) << scaled->status.error_message();
  EXPECT_NE(scaled->factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_TRUE(scaled->factor.row_scaled() || scaled->factor.col_scaled());
  EXPECT_LT(BackwardError(badly_scaled, 2, Op::kNone, scaled->solved.x, {1, 1}, 1), 1e-15);
}

TEST_F(RpcDynamicBatchTest, ABatchMethodByNameAcceptsAnyOrderAndNoOptions) {
  auto large = Begin(Factor(200, 1, v1::ALGORITHM_IRR_LU));
  Join(*large);
  ASSERT_TRUE(large->status.ok()) << large->status.error_message();
  EXPECT_EQ(large->factor.algorithm(), v1::ALGORITHM_IRR_LU);
  v1::FactorizeHeader header;
  *header.mutable_matrix() = Dense(8, 8);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_IRR_LU);
  header.mutable_options()->set_condition(true);
  v1::Factor factor;
  ExpectRefused(RpcTest::Factorize(header, Bytes(Matrix(8)), &factor), StatusCode::INVALID_ARGUMENT,
                "irr_lu");
  v1::FactorizeHeader text;
  *text.mutable_matrix() = Text();
  text.mutable_options()->set_algorithm(v1::ALGORITHM_IRR_LU);
  ExpectRefused(RpcTest::Factorize(text, "", &factor), StatusCode::INVALID_ARGUMENT, "irr_lu");
}

TEST_F(RpcDynamicBatchTest, LargerMatricesAndOtherOptionsKeepTheirMethod) {
  v1::Factor factor;
  ASSERT_TRUE(Factorize(65, &factor).ok());
  EXPECT_NE(factor.algorithm(), v1::ALGORITHM_IRR_LU);
  v1::FactorizeHeader header;
  *header.mutable_matrix() = Dense(8, 8);
  header.mutable_options()->set_determinant(true);
  ASSERT_TRUE(RpcTest::Factorize(header, Bytes(Matrix(8)), &factor).ok());
  EXPECT_NE(factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_EQ(BatchedCalls("count"), 0);
}

TEST_F(RpcDynamicBatchTest, TheEstimateIsForTheMethodThatWouldRun) {
  const auto estimate = [&](int64_t n, v1::FactorizeOptions options,
                            v1::EstimateFactorizeResponse* response) {
    grpc::ClientContext context;
    v1::EstimateFactorizeRequest request;
    request.set_n(n);
    *request.mutable_options() = std::move(options);
    return stub().EstimateFactorize(&context, request, response);
  };
  v1::EstimateFactorizeResponse small, dropped, large;
  ASSERT_TRUE(estimate(30, {}, &small).ok());
  EXPECT_EQ(small.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_TRUE(small.fits());
  v1::Factor factor;
  ASSERT_TRUE(Factorize(30, &factor).ok());
  EXPECT_EQ(small.cached_bytes(), factor.bytes());
  v1::FactorizeOptions without_matrix;
  without_matrix.set_keep_matrix(false);
  ASSERT_TRUE(estimate(30, without_matrix, &dropped).ok());
  EXPECT_LT(dropped.cached_bytes(), small.cached_bytes());
  ASSERT_TRUE(estimate(65, {}, &large).ok());
  EXPECT_NE(large.algorithm(), v1::ALGORITHM_IRR_LU);

  v1::FactorizeOptions by_name;
  by_name.set_algorithm(v1::ALGORITHM_IRR_LU);
  ASSERT_TRUE(estimate(65, by_name, &large).ok());
  EXPECT_EQ(large.algorithm(), v1::ALGORITHM_IRR_LU);
  // A batch is factored in the matrix's type, also where a lower precision would be faster.
  v1::EstimateFactorizeResponse wide, automatic;
  ASSERT_TRUE(estimate(16384, by_name, &wide).ok());
  by_name.set_precision(v1::FACTOR_PRECISION_AUTO);
  ASSERT_TRUE(estimate(16384, by_name, &automatic).ok());
  EXPECT_EQ(automatic.cached_bytes(), wide.cached_bytes());
  by_name.set_condition(true);
  ExpectRefused(estimate(30, by_name, &large), StatusCode::INVALID_ARGUMENT, "irr_lu");
}

TEST_F(RpcDynamicBatchTest, ABatchedFactorMovesToHostMemoryAndBack) {
  v1::Factor factor;
  ASSERT_TRUE(Factorize(30, &factor, 1).ok());
  Solved before, after;
  ASSERT_TRUE(Solve(factor.handle(), HostMatrix(30, 1), &before).ok());
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  ASSERT_OK(core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
  ASSERT_TRUE(Solve(factor.handle(), HostMatrix(30, 1), &after).ok());
  EXPECT_TRUE(after.result.promoted());
  EXPECT_EQ(after.x, before.x);
}

TEST_F(RpcDynamicBatchTest, ManyConcurrentClientsLeaveNothing) {
  std::vector<std::unique_ptr<Call>> calls;
  calls.reserve(24);
  for (int k = 0; k < 24; ++k) {
    calls.push_back(Begin(Both(5 + k, Matrix(5 + k, k), HostMatrix(5 + k, 1))));
  }
  for (const auto& call : calls) {
    Join(*call);
    EXPECT_TRUE(call->status.ok()) << call->status.error_message();
  }
  EXPECT_EQ(BatchedCalls("sum"), 24);
  ExpectHeldSoon(before_);
}

// The server has two streams. While one is busy, the other waits up to an hour for a batch of three
// calls.
class RpcDynamicBatchDelayTest : public RpcDynamicBatchTest {
 protected:
  void SetUp() override {
    Config config = DynamicBatchConfig();
    config.pool.scheduler.streams = 2;
    config.pool.scheduler.max_batch_jobs = 3;
    config.pool.scheduler.max_batch_delay = absl::Hours(1);
    Start(config);
  }

  double Waited(const std::string& what) {
    return SampleOf(core().metrics.Scrape(),
                    "crout_dynamic_batch_delay_seconds_" + what + "{device=\"cuda:0\"}")
        .value_or(-1);
  }
};

TEST_F(RpcDynamicBatchDelayTest, OtherJobsOvertakeJobsThatWaitForABatch) {
  HoldTheStream();
  auto first = Begin(Factor(8, 1));
  auto second = Begin(Factor(8, 2));
  AwaitQueued(2);
  auto named = Begin(Factor(8, 3, v1::ALGORITHM_GETRF));
  Join(*named);
  EXPECT_TRUE(named->status.ok()) << named->status.error_message();
  EXPECT_EQ(named->factor.algorithm(), v1::ALGORITHM_GETRF);
  EXPECT_EQ(Held().queue_depth, 2u) << "they wait still";
  failpoints().Advance(absl::Minutes(1));
  const int running = failpoints().reached("dynamic_batch.run");
  auto third = Begin(Factor(8, 4));
  failpoints().AwaitReached("dynamic_batch.run", running + 1);
  ReleaseStream();
  for (auto* call : {first.get(), second.get(), third.get()}) {
    Join(*call);
    EXPECT_TRUE(call->status.ok()) << call->status.error_message();
  }
  EXPECT_EQ(BatchedCalls("count"), 2);
  EXPECT_EQ(BatchedCalls("sum"), 1 + 3);
  EXPECT_EQ(Waited("count"), 2);
  EXPECT_GE(Waited("sum"), 60) << "the one that was held had not waited";
}

class RpcDynamicBatchOffTest : public RpcDynamicBatchTest {
 protected:
  void SetUp() override {
    Config config = DynamicBatchConfig();
    config.DisableBatching();
    Start(config);
  }
};

TEST_F(RpcDynamicBatchOffTest, OnlyABatchMethodByNameRuns) {
  v1::Factor factor;
  ASSERT_TRUE(Factorize(8, &factor).ok());
  EXPECT_NE(factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_EQ(BatchedCalls("count"), 0);
  auto named = Begin(Factor(8, 1, v1::ALGORITHM_IRR_LU));
  Join(*named);
  EXPECT_TRUE(named->status.ok()) << named->status.error_message();
  EXPECT_EQ(named->factor.algorithm(), v1::ALGORITHM_IRR_LU);
}

}  // namespace
}  // namespace crout::testing::dynamic_batch_test
