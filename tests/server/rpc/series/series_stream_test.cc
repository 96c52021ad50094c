// SPDX-License-Identifier: Apache-2.0

// Tests the streams of SolveSeries: their state between steps, and how they end.
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/rpc/series/series_fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::series_stream_test {
namespace {

using ::testing::HasSubstr;

TEST_F(RpcSeriesTest, BeginsWithAHandle) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const std::vector<double> a = Matrix(kN);
  Series series(stub());
  v1::SolveSeriesHeader header = With(v1::SERIES_STRATEGY_REUSE);
  header.set_handle(factor.handle());
  Answer answer;
  ASSERT_TRUE(series.Step({}, b_, &answer, header));
  ExpectSolved(answer, a, b_);
  EXPECT_FALSE(answer.factor);
  const std::vector<double> next = Changed(a, 1e-5, 4);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  EXPECT_EQ(answer.result.new_iterations(), 0);
  EXPECT_TRUE(series.Finish().ok());

  header.set_handle("aaaaaaaaaaaaaaaaaaaaaaaaaa");
  Series unknown(stub());
  EXPECT_FALSE(unknown.Step(a, b_, &answer, header));
  EXPECT_EQ(unknown.Status().error_code(), grpc::StatusCode::NOT_FOUND);
  header.set_handle(factor.handle());
  Series stranger(stub(), "somebody-else");
  EXPECT_FALSE(stranger.Step(a, b_, &answer, header));
  EXPECT_EQ(stranger.Status().error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(RpcSeriesTest, AStepMayBeSentBeforeTheAnswerToTheLastOne) {
  StartServer();
  Series series(stub());
  constexpr int kSteps = 12;
  std::vector<std::vector<double>> matrices = {a_};
  for (int step = 1; step < kSteps; ++step) {
    matrices.push_back(Changed(matrices.back(), 1e-7, step));
  }
  ASSERT_TRUE(series.Send(matrices[0], b_));
  for (int step = 0; step < kSteps; ++step) {
    if (step + 1 < kSteps) {
      ASSERT_TRUE(series.Send(matrices[step + 1], b_));
    } else {
      series.HalfClose();
    }
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer)) << step;
    ExpectSolved(answer, matrices[step], b_);
  }
  EXPECT_TRUE(series.Status().ok());
}

TEST_F(RpcSeriesTest, PayloadsInManyMessages) {
  StartServer();
  Series series(stub());
  Answer answer;
  for (int step = 0; step < 3; ++step) {
    const std::vector<double> a = Changed(a_, 1e-7, step);
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
    ASSERT_TRUE(series.Write(request));  // only a header
    const std::string bytes = Bytes(a);
    for (size_t at = 0; at < bytes.size(); at += 1000) {
      v1::SolveSeriesRequest part;
      part.set_data(bytes.substr(at, 1000));
      ASSERT_TRUE(series.Write(part));
    }
    v1::SolveSeriesRequest rhs;
    rhs.set_rhs_data(Bytes(b_));
    ASSERT_TRUE(series.Write(rhs));
    ASSERT_TRUE(series.Receive(&answer));
    ExpectSolved(answer, a, b_);
  }
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, AnEmptyMessageBetweenStepsIsIgnored) {
  StartServer();
  Series series(stub());
  Answer answer;
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(series.Step(a_, b_, &answer)) << step;
    ExpectSolved(answer, a_, b_);
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(series.Write({}));
  }
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, InvalidStepsEndTheStreamAndKeepTheFactor) {
  StartServer();
  struct Case {
    const char* what;
    std::function<void(v1::SolveSeriesRequest&)> spoil;
    grpc::StatusCode code;
    const char* message;
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Case cases[] = {
      {"an option in a later header", [](auto& r) { r.mutable_header()->set_accuracy(0.1); },
       grpc::StatusCode::INVALID_ARGUMENT, "only matrix, change, rhs and x0"},
      {"no header", [](auto& r) { r.clear_header(); }, grpc::StatusCode::INVALID_ARGUMENT,
       "more bytes than the step's header declares"},
      {"a text on the right", [](auto& r) { *r.mutable_header()->mutable_rhs() = Text(); },
       grpc::StatusCode::INVALID_ARGUMENT, "dense"},
      {"no right-hand side", [](auto& r) { r.mutable_header()->clear_rhs(); },
       grpc::StatusCode::INVALID_ARGUMENT, "header.rhs"},
      {"another order",
       [](auto& r) { *r.mutable_header()->mutable_matrix() = Dense(kN + 1, kN + 1); },
       grpc::StatusCode::FAILED_PRECONDITION, "header.matrix"},
      {"not square", [](auto& r) { *r.mutable_header()->mutable_matrix() = Dense(kN, kN + 1); },
       grpc::StatusCode::INVALID_ARGUMENT, "header.matrix"},
      {"too many rows on the right",
       [](auto& r) { *r.mutable_header()->mutable_rhs() = Dense(kN + 1, 1); },
       grpc::StatusCode::INVALID_ARGUMENT, "header.rhs"},
      {"a matrix of order 0",
       [](auto& r) {
         *r.mutable_header()->mutable_matrix() = Dense(0, 0);
         r.clear_data();
       },
       grpc::StatusCode::INVALID_ARGUMENT, "order 0"},
      {"more bytes than declared", [](auto& r) { r.mutable_rhs_data()->append(8, 'x'); },
       grpc::StatusCode::INVALID_ARGUMENT, "more bytes"},
      {"a change beside a matrix",
       [](auto& r) { r.mutable_header()->mutable_change()->set_rank(1); },
       grpc::StatusCode::INVALID_ARGUMENT, "a matrix is also set"},
      {"a change of no kind",
       [](auto& r) {
         r.mutable_header()->clear_matrix();
         r.mutable_header()->mutable_change();
       },
       grpc::StatusCode::INVALID_ARGUMENT, "header.change"},
      {"a change of too many entries",
       [](auto& r) {
         r.mutable_header()->clear_matrix();
         r.mutable_header()->mutable_change()->set_entries(int64_t{1} << 61);
       },
       grpc::StatusCode::INVALID_ARGUMENT, "header.change"},
      {"a change of nothing",
       [](auto& r) {
         r.mutable_header()->clear_matrix();
         r.mutable_header()->mutable_change()->set_rank(0);
       },
       grpc::StatusCode::INVALID_ARGUMENT, "header.change"},
      {"an entry beyond the matrix",
       [](auto& r) {
         r.mutable_header()->clear_matrix();
         r.mutable_header()->mutable_change()->set_entries(1);
         r.set_data(Concatenate(std::vector<double>{1}, std::vector<int32_t>{0, kN}));
       },
       grpc::StatusCode::INVALID_ARGUMENT, "outside"},
      {"NaN in a change",
       [&](auto& r) {
         r.mutable_header()->clear_matrix();
         r.mutable_header()->mutable_change()->set_entries(1);
         r.set_data(Concatenate(std::vector<double>{nan}, std::vector<int32_t>{2, 1}));
       },
       grpc::StatusCode::INVALID_ARGUMENT, "change: the changed matrix has a NaN"},
      {"NaN",
       [&](auto& r) {
         std::vector<double> b(2 * kN, 1);
         b[3] = nan;
         r.set_rhs_data(Bytes(b));
       },
       grpc::StatusCode::INVALID_ARGUMENT, "right-hand side"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    Series series(stub());
    Answer answer;
    ASSERT_TRUE(series.Step(a_, b_, &answer));
    const std::string handle = answer.factor->handle();
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
    request.set_data(Bytes(a_));
    request.set_rhs_data(Bytes(b_));
    c.spoil(request);
    series.Write(request);
    // The server detects excess data when the step is complete.
    while (series.Receive(&answer)) {
    }
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), c.code) << status.error_message();
    EXPECT_THAT(status.error_message(), HasSubstr(c.message));
    Solved solved;
    EXPECT_TRUE(Solve(handle, RandomMatrix(kN, 1, 6), &solved).ok());
  }
  WaitUntil([&] { return Idle().factors == std::size(cases); }, "the streams' own parts to go");
}

TEST_F(RpcSeriesTest, AHeaderBeforeTheStepIsCompleteIsRefused) {
  StartServer();
  Series series(stub());
  v1::SolveSeriesRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
  ASSERT_TRUE(series.Write(request));
  series.Write(request);
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("sent before the payload of the previous step"));
}

TEST_F(RpcSeriesTest, FirstHeadersAreChecked) {
  StartServer();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const std::pair<std::function<void(v1::SolveSeriesHeader&)>, const char*> cases[] = {
      {[](auto& h) { h.set_accuracy(-1); }, "header.accuracy"},
      {[](auto& h) { h.set_accuracy(1); }, "header.accuracy"},
      {[](auto& h) { h.set_accuracy(std::numeric_limits<double>::quiet_NaN()); },
       "header.accuracy"},
      {[](auto& h) { h.set_strategy(static_cast<v1::SeriesStrategy>(77)); }, "header.strategy"},
      {[](auto& h) { h.set_operation(static_cast<v1::Operation>(77)); }, "header.operation"},
      {[](auto& h) { h.mutable_options()->set_keep_matrix(false); }, "keep_matrix"},
      {[](auto& h) { h.mutable_options()->set_condition(true); }, "condition"},
      {[](auto& h) { h.mutable_cache()->set_request_id("x"); }, "request_id"},
      {[&](auto& h) {
         h.set_handle(factor.handle());
         h.mutable_cache()->set_name("x");
       },
       "header.cache: header.handle is also set"},
      {[&](auto& h) {
         h.set_handle(factor.handle());
         h.mutable_options()->set_device("host");
       },
       "header.options.device"},
  };
  for (const auto& [spoil, message] : cases) {
    Series series(stub());
    v1::SolveSeriesHeader header;
    spoil(header);
    Answer answer;
    EXPECT_FALSE(series.Step(Matrix(kN), b_, &answer, header));
    const grpc::Status status = series.Status();
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr(message));
  }
  Series none(stub());
  Answer answer;
  EXPECT_FALSE(none.Step({}, b_, &answer));
  EXPECT_THAT(none.Status().error_message(), HasSubstr("the first step of a series has a matrix"));
}

TEST_F(RpcSeriesTest, IdleStreamsHoldOnlyCachedFactorsAndEnd) {
  Config config = SmallConfig();
  // The timeout is much longer than this test takes, even on a slow machine.
  config.limits.series_idle_timeout = absl::Minutes(10);
  StartServer({}, config);
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  ASSERT_TRUE(series.Step(Changed(a_, 1e-6, 1), b_, &answer));
  WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
  // The stream holds the factor, the matrix of the previous step and the solution. All can be
  // evicted.
  const Holdings held = Held();
  EXPECT_EQ(held.factors, 3u);
  EXPECT_EQ(held.device_reserved,
            core().engine.cache.EvictableBytes(*core().engine.devices.slots()[0]));
  EXPECT_EQ(held.uploads, 0);
  // Each of two further steps follows after 6 minutes, which is within the timeout.
  for (int step = 0; step < 2; ++step) {
    failpoints().AwaitReached("call.sent", 2 + step);
    PassTime(absl::Minutes(6));
    ASSERT_TRUE(series.Step(Changed(a_, 1e-6, 2 + step), b_, &answer));
  }
  failpoints().AwaitReached("call.sent", 4);
  PassTime(absl::Minutes(11));
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("resume the series"));
  WaitUntil([&] { return Idle().factors == 1; }, "the parts between the steps to go");
}

TEST_F(RpcSeriesTest, EvictedPartsAreRestored) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  const std::vector<double> next = Changed(a_, 1e-6, 1);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
  // Moves the parts to host memory. The next step promotes them.
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  const auto all = core().engine.cache.ReserveOnDevice(slot, slot.budget->limit());
  ASSERT_TRUE(all.ok());
  { const Reservation taken = std::move(const_cast<Reservation&>(*all)); }
  ASSERT_TRUE(series.Step({}, b_, &answer)) << series.Status().error_message();
  ExpectSolved(answer, next, b_);
}

TEST_F(RpcSeriesTest, DroppedPartsAreRequestedOnceAndCachedAgain) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  const auto handle = Handle::Parse(answer.factor->handle());
  ASSERT_TRUE(handle.has_value());
  ASSERT_TRUE(series.Step(Changed(a_, 1e-6, 1), b_, &answer));
  const auto drop_the_idle = [&] {
    WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
    // The pinned factor stays. The other parts move to host memory and are then evicted.
    const auto pin = core().engine.cache.Acquire("default", *handle);
    ASSERT_TRUE(pin.ok());
    DeviceSlot& slot = *core().engine.devices.slots()[0];
    const size_t device = slot.budget->limit() - slot.budget->reserved();
    ASSERT_TRUE(
        core()
            .engine.cache.ReserveOnDevice(slot, device + core().engine.cache.EvictableBytes(slot))
            .ok());
    MemoryBudget& host = core().engine.devices.host_budget();
    const size_t evicted = core().engine.cache.tiers()[static_cast<size_t>(Tier::kHost)].bytes;
    ASSERT_TRUE(core().engine.cache.ReserveOnHost(host.limit() - host.reserved() + evicted).ok());
    EXPECT_EQ(Held().factors, 1u);
  };
  drop_the_idle();
  const std::vector<double> next = Changed(a_, 1e-6, 2);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  EXPECT_EQ(answer.result.new_iterations(), 0);
  // The next step uses the parts that this step has stored.
  ASSERT_TRUE(series.Step({}, b_, &answer)) << series.Status().error_message();
  ExpectSolved(answer, next, b_);
  drop_the_idle();
  EXPECT_FALSE(series.Step({}, b_, &answer));
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("send the step with its matrix"));
}

TEST_F(RpcSeriesTest, CancellationReleasesEverything) {
  StartServer();
  const Holdings before = Idle();
  {
    Series series(stub());
    Answer answer;
    ASSERT_TRUE(series.Step(a_, b_, &answer));
    device().factor_gate().Close();
    ASSERT_TRUE(series.Send(RandomMatrix(kN, kN, 98), b_));
    device().factor_gate().WaitUntilHeld();
    series.Cancel();
    device().factor_gate().Open();
    EXPECT_EQ(series.Status().error_code(), grpc::StatusCode::CANCELLED);
  }
  WaitUntil([&] { return Idle().factors == before.factors + 1; }, "the factor alone");
}

TEST_F(RpcSeriesTest, AFactorReleasedDuringAStepIsComputedAgain) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REFACTOR)));
  const std::string released = answer.factor->handle();
  device().factor_gate().Close();
  const std::vector<double> next = RandomMatrix(kN, kN, 98);
  ASSERT_TRUE(series.Send(next, b_));
  device().factor_gate().WaitUntilHeld();
  v1::ReleaseFactorRequest release;
  release.set_handle(released);
  v1::ReleaseFactorResponse response;
  grpc::ClientContext context;
  EXPECT_TRUE(stub().ReleaseFactor(&context, release, &response).ok());
  device().factor_gate().Open();
  ASSERT_TRUE(series.Receive(&answer));
  ExpectSolved(answer, next, b_);
  ASSERT_TRUE(answer.factor);
  EXPECT_NE(answer.factor->handle(), released);
  EXPECT_EQ(Listed().size(), 1u);
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, AFactorOfTheOtherNumberFieldEndsTheSeries) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer));
  grpc::ClientContext context;
  auto stream = stub().Refactorize(&context);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(answer.factor->handle());
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  request.mutable_header()->mutable_matrix()->mutable_dense()->set_dtype(v1::DTYPE_COMPLEX128);
  request.set_data(Bytes(RandomMatrix(kN, 2 * kN, 4)));
  stream->Write(request);
  stream->WritesDone();
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  ASSERT_TRUE(series.Send(a_, b_));
  const grpc::Status status = series.Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("header.matrix"));
}

TEST_F(RpcSeriesTest, DrainingEndsStreamsBetweenSteps) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer));
  failpoints().AwaitReached("call.sent");
  core().draining = true;
  components().Housekeep();
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("draining"));
}

TEST_F(RpcSeriesTest, AnotherCallMayReplaceTheFactor) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  ASSERT_TRUE(Replace(answer.factor->handle(), Matrix(kN, 7)).ok());
  // A step with a matrix uses the new factor or makes another.
  const std::vector<double> next = Changed(a_, 1e-6, 1);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  ASSERT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, EachStepIsMeasuredByItself) {
  StartServer();
  const auto sample = [this](const char* series) {
    return SampleOf(core().metrics.Scrape(), series).value_or(0);
  };
  constexpr char kDurations[] = "crout_request_duration_seconds_count{method=\"SolveSeries\"}";
  constexpr char kCalls[] = "crout_requests_total{code=\"OK\",method=\"SolveSeries\"}";
  constexpr char kReceiving[] = "crout_phase_duration_seconds_count{phase=\"receive\"}";
  Series series(stub());
  Answer answer;
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(series.Step(a_, b_, &answer));
    WaitUntil([&] { return sample(kDurations) == step && sample(kReceiving) == step; },
              "the step to be counted");
    EXPECT_EQ(sample(kCalls), 0);
  }
  ASSERT_TRUE(series.Finish().ok());
  WaitUntil([&] { return sample(kCalls) == 1; }, "the call to be counted");
  // The lifetime of the stream does not count as the duration of a request.
  EXPECT_EQ(sample(kDurations), 3);
}

TEST_F(RpcSeriesTest, ASeriesResumesByHandleAfterABrokenStream) {
  StartServer();
  std::string handle;
  {
    Series cut(stub());
    Answer answer;
    ASSERT_TRUE(cut.Step(a_, b_, &answer));
    handle = answer.factor->handle();
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
    request.set_data(Bytes(a_).substr(0, kN));
    ASSERT_TRUE(cut.Write(request));
    cut.Cancel();
    EXPECT_EQ(cut.Status().error_code(), grpc::StatusCode::CANCELLED);
  }
  Series series(stub());
  v1::SolveSeriesHeader header = With(v1::SERIES_STRATEGY_REUSE);
  header.set_handle(handle);
  const std::vector<double> next = Changed(a_, 1e-6, 1);
  Answer answer;
  ASSERT_TRUE(series.Step(next, b_, &answer, header));
  ExpectSolved(answer, next, b_);
  EXPECT_FALSE(answer.factor);
  EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REUSE);
  EXPECT_EQ(answer.result.factor_version(), 1);
  ASSERT_TRUE(series.Finish().ok());
}

}  // namespace
}  // namespace crout::testing::series_stream_test
