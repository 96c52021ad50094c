// SolveSeries: steps over one stream, what is there between them, and how it ends.
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "kernels/util/size_class.h"
#include "tests/server/rpc_fixture.h"
#include "tests/support/ratios.h"

namespace crout::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kN = 40;
const double kAccuracy = std::sqrt(static_cast<double>(kN)) * 0x1p-53;

class RpcSeriesTest : public RpcTest {
 protected:
  struct Answer {
    std::optional<v1::Factor> factor;
    v1::SeriesResult result;
    std::vector<double> x;
  };

  // One stream.
  class Series {
   public:
    explicit Series(v1::FactorizationService::Stub& stub, const std::string& tenant = "default") {
      context_.AddMetadata("crout-tenant", tenant);
      stream_ = stub.SolveSeries(&context_);
    }

    // Sends a step; without `a` right-hand sides alone.
    bool Send(const std::vector<double>& a, const std::vector<double>& b,
              v1::SolveSeriesHeader header = {}) {
      if (!a.empty()) *header.mutable_matrix() = Dense(kN, kN);
      *header.mutable_rhs() = Dense(kN, static_cast<int64_t>(b.size()) / kN);
      v1::SolveSeriesRequest request;
      *request.mutable_header() = header;
      request.set_data(Bytes(a));
      request.set_rhs_data(Bytes(b));
      return stream_->Write(request);
    }
    bool Write(const v1::SolveSeriesRequest& request) { return stream_->Write(request); }
    // False where the stream is over.
    bool Receive(Answer* answer) {
      *answer = {};
      std::string data;
      v1::SolveSeriesResponse response;
      while (stream_->Read(&response)) {
        if (response.has_factor()) answer->factor = response.factor();
        data += response.data();
        if (!response.has_result()) continue;
        answer->result = response.result();
        answer->x.resize(data.size() / sizeof(double));
        if (!data.empty()) std::memcpy(answer->x.data(), data.data(), data.size());
        return true;
      }
      return false;
    }
    bool Step(const std::vector<double>& a, const std::vector<double>& b, Answer* answer,
              const v1::SolveSeriesHeader& header = {}) {
      return Send(a, b, header) && Receive(answer);
    }
    void HalfClose() { stream_->WritesDone(); }
    grpc::Status Finish() {
      stream_->WritesDone();
      return Status();
    }
    grpc::Status Status() {
      v1::SolveSeriesResponse response;
      while (stream_->Read(&response)) {
      }
      return stream_->Finish();
    }
    void Cancel() { context_.TryCancel(); }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSeriesRequest, v1::SolveSeriesResponse>>
        stream_;
  };

  static std::vector<double> Changed(std::vector<double> a, double change, uint64_t seed) {
    const HostMatrix random = RandomMatrix(kN, kN, seed);
    for (size_t i = 0; i < a.size(); ++i) a[i] += change * random[i];
    return a;
  }
  static void ExpectSolved(const Answer& answer, const std::vector<double>& a,
                           const std::vector<double>& b) {
    EXPECT_TRUE(answer.result.solved());
    EXPECT_TRUE(answer.result.accurate());
    EXPECT_THAT(answer.result.warnings(), ElementsAre());
    ASSERT_EQ(answer.x.size(), b.size());
    EXPECT_LE(BackwardError(a, kN, Op::kNone, answer.x, b, static_cast<int64_t>(b.size()) / kN),
              1.1 * kAccuracy);
  }
  static v1::SolveSeriesHeader With(v1::SeriesStrategy strategy) {
    v1::SolveSeriesHeader header;
    header.set_strategy(strategy);
    return header;
  }
  std::vector<v1::Factor> Listed() {
    grpc::ClientContext context;
    v1::ListFactorsResponse response;
    EXPECT_TRUE(stub().ListFactors(&context, {}, &response).ok());
    return {response.factors().begin(), response.factors().end()};
  }

  const std::vector<double> a_ = RandomMatrix(kN, kN, 3);
  const std::vector<double> b_ = RandomMatrix(kN, 2, 5);
};

TEST_F(RpcSeriesTest, StepsReuseTheFactorUntilItDoesNotServe) {
  StartServer();
  const Holdings before = Idle();
  Series series(stub());
  v1::SolveSeriesHeader header = With(v1::SERIES_STRATEGY_REUSE);
  header.mutable_cache()->set_name("flow");
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, header));
  ExpectSolved(answer, a_, b_);
  ASSERT_TRUE(answer.factor);
  EXPECT_EQ(answer.factor->name(), "flow");
  EXPECT_EQ(answer.factor->version(), 1);
  EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REFACTOR);
  EXPECT_EQ(answer.result.age(), 0);
  const std::string handle = answer.factor->handle();

  std::vector<double> a = a_;
  for (int step = 1; step <= 4; ++step) {
    a = Changed(a, 1e-6, 10 + step);
    ASSERT_TRUE(series.Step(a, b_, &answer));
    ExpectSolved(answer, a, b_);
    EXPECT_FALSE(answer.factor);
    EXPECT_EQ(answer.result.strategy(), v1::SERIES_STRATEGY_REUSE);
    EXPECT_EQ(answer.result.age(), step);
    EXPECT_GE(answer.result.old_iterations(), 1);
    EXPECT_EQ(answer.result.new_iterations(), 0);
    EXPECT_EQ(answer.result.factor_version(), 1);
  }
  // Right-hand sides alone: with the matrix of the last step.
  const std::vector<double> other = RandomMatrix(kN, 1, 6);
  ASSERT_TRUE(series.Step({}, other, &answer));
  ExpectSolved(answer, a, other);

  // Any other call uses the factor meanwhile; what else is kept is nobody's business.
  Solved solved;
  EXPECT_TRUE(Solve(handle, other, &solved).ok());
  EXPECT_LE(BackwardError(a_, kN, Op::kNone, solved.x, other, 1), kAccuracy);
  EXPECT_EQ(Listed().size(), 1u);

  EXPECT_TRUE(series.Finish().ok());
  WaitUntil([&] { return Idle().factors == 1; }, "the parts between the steps to go");
  v1::ReleaseFactorRequest release;
  release.set_handle(handle);
  v1::ReleaseFactorResponse released;
  grpc::ClientContext context;
  EXPECT_TRUE(stub().ReleaseFactor(&context, release, &released).ok());
  ExpectHeldSoon(before);
}

// What a change brings, one part behind the other.
template <class... Parts>
std::string Together(const Parts&... parts) {
  std::string data;
  (data.append(reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(parts[0])), ...);
  return data;
}

TEST_F(RpcSeriesTest, ChangesTravelInPlaceOfMatrices) {
  StartServer();
  const Holdings before = Idle();
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  std::vector<double> a = Matrix(kN);
  const std::vector<double> b = RandomMatrix(kN, 1, 6);
  Series series(stub());
  v1::SolveSeriesHeader header;
  header.set_handle(factor.handle());
  v1::SolveSeriesRequest request;
  request.set_rhs_data(Bytes(b));
  for (int step = 0; step < 4; ++step) {
    v1::SolveSeriesHeader& next = *request.mutable_header() = header;
    header.clear_handle();
    *next.mutable_rhs() = Dense(kN, 1);
    if (step % 2 == 0) {
      const std::vector<double> values = {1.5 + step, -0.25};
      const std::vector<int32_t> rows = {0, kN - 1};
      const std::vector<int32_t> cols = {step, 3};
      for (int k = 0; k < 2; ++k) a[rows[k] + cols[k] * kN] = values[k];
      next.mutable_change()->set_entries(2);
      request.set_data(Together(values, rows, cols));
    } else {
      const std::vector<double> u = RandomMatrix(kN, 1, 30 + step);
      const std::vector<double> v = RandomMatrix(kN, 1, 40 + step);
      for (int64_t j = 0; j < kN; ++j) {
        for (int64_t i = 0; i < kN; ++i) a[i + j * kN] += u[i] * v[j];
      }
      next.mutable_change()->set_rank(1);
      request.set_data(Together(u, v));
    }
    ASSERT_TRUE(series.Write(request));
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer));
    ExpectSolved(answer, a, b);
  }
  EXPECT_TRUE(series.Finish().ok());
  WaitUntil([&] { return Idle().factors == before.factors + 1; }, "what was between the steps");
}

TEST_F(RpcSeriesTest, AMatrixTooFarIsFactoredInTheSameStep) {
  StartServer();
  for (const auto strategy :
       {v1::SERIES_STRATEGY_AUTO, v1::SERIES_STRATEGY_REFACTOR, v1::SERIES_STRATEGY_REUSE}) {
    Series series(stub());
    Answer answer;
    ASSERT_TRUE(series.Step(a_, b_, &answer, With(strategy)));
    // Its entries have other signs.
    std::vector<double> far = RandomMatrix(kN, kN, 99);
    far[0] = std::numeric_limits<double>::min();
    ASSERT_TRUE(series.Step(far, b_, &answer));
    ExpectSolved(answer, far, b_);
    if (strategy == v1::SERIES_STRATEGY_REFACTOR) {
      EXPECT_EQ(answer.result.old_iterations(), 0);
      ASSERT_TRUE(answer.factor);
      EXPECT_EQ(answer.factor->version(), 2);
      EXPECT_EQ(answer.result.age(), 0);
      // Its matrix is that of the factor now.
      ASSERT_TRUE(series.Step({}, b_, &answer));
      ExpectSolved(answer, far, b_);
    }
    EXPECT_TRUE(series.Finish().ok());
  }
}

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

TEST_F(RpcSeriesTest, StepsMayBeSentBeforeTheAnswers) {
  StartServer();
  Series series(stub());
  constexpr int kSteps = 12;
  std::vector<std::vector<double>> matrices = {a_};
  for (int step = 1; step < kSteps; ++step) {
    matrices.push_back(Changed(matrices.back(), 1e-7, step));
  }
  for (int step = 0; step < kSteps; ++step) ASSERT_TRUE(series.Send(matrices[step], b_));
  series.HalfClose();
  for (int step = 0; step < kSteps; ++step) {
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
    ASSERT_TRUE(series.Write(request));  // a header alone
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

TEST_F(RpcSeriesTest, TextsOfMatricesStaySparse) {
  FakeDeviceOptions options;
  options.has_sparse_ops = true;
  StartServer(options);
  Series series(stub());
  std::vector<double> a(kN * kN);
  for (int step = 0; step < 3; ++step) {
    std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real general\n", kN, " ", kN,
                                    " ", 2 * kN - 1, "\n");
    for (int64_t i = 0; i < kN; ++i) {
      a[i + i * kN] = 4 + 1e-5 * step * static_cast<double>(i);
      absl::StrAppendFormat(&text, "%d %d %.17g\n", i + 1, i + 1, a[i + i * kN]);
      if (i == 0) continue;
      a[i + (i - 1) * kN] = 1;
      absl::StrAppendFormat(&text, "%d %d 1\n", i + 1, i);
    }
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Text();
    *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
    request.set_data(text);
    request.set_rhs_data(Bytes(b_));
    ASSERT_TRUE(series.Write(request));
    Answer answer;
    ASSERT_TRUE(series.Receive(&answer)) << series.Status().error_message();
    ExpectSolved(answer, a, b_);
    ASSERT_TRUE(series.Step({}, b_, &answer));
    ExpectSolved(answer, a, b_);
  }
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesTest, ASingularMatrixIsAnAnswerAndTheNextStepIsSolved) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REFACTOR)));
  std::vector<double> singular = a_;
  for (int64_t i = 0; i < kN; ++i) singular[i] = 0;
  ASSERT_TRUE(series.Step(singular, b_, &answer));
  EXPECT_FALSE(answer.result.solved());
  EXPECT_FALSE(answer.result.accurate());
  EXPECT_TRUE(answer.x.empty());
  ASSERT_TRUE(answer.factor);
  EXPECT_EQ(answer.factor->info(), 1);
  EXPECT_EQ(answer.factor->handle(), "");
  EXPECT_EQ(answer.result.factor_version(), 1);
  const std::vector<double> next = Changed(a_, 1e-6, 4);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  EXPECT_EQ(answer.result.factor_version(), 2);
  // The matrix of a singular step is nobody's.
  ASSERT_TRUE(series.Step(singular, b_, &answer));
  EXPECT_FALSE(series.Step({}, b_, &answer));
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("send the step with its matrix"));
}

TEST_F(RpcSeriesTest, WhatIsWrongEndsTheStreamAndNotTheFactor) {
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
       grpc::StatusCode::INVALID_ARGUMENT, "only matrix, change and rhs"},
      {"no header", [](auto& r) { r.clear_header(); }, grpc::StatusCode::INVALID_ARGUMENT,
       "header"},
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
       grpc::StatusCode::INVALID_ARGUMENT, "beside a matrix"},
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
         r.set_data(Together(std::vector<double>{1}, std::vector<int32_t>{0, kN}));
       },
       grpc::StatusCode::INVALID_ARGUMENT, "outside"},
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
    // What is too much is seen when the step is over.
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

TEST_F(RpcSeriesTest, AHeaderBeforeTheStepIsWholeIsRefused) {
  StartServer();
  Series series(stub());
  v1::SolveSeriesRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
  ASSERT_TRUE(series.Write(request));
  series.Write(request);
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("comes before the payload"));
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
      {[](auto& h) { h.mutable_options()->set_drop_matrix(true); }, "drop_matrix"},
      {[](auto& h) { h.mutable_options()->set_condition(true); }, "condition"},
      {[](auto& h) { h.mutable_cache()->set_request_id("x"); }, "request_id"},
      {[&](auto& h) {
         h.set_handle(factor.handle());
         h.mutable_cache()->set_name("x");
       },
       "header.cache"},
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
  EXPECT_THAT(none.Status().error_message(), HasSubstr("there is no matrix yet"));
}

TEST_F(RpcSeriesTest, IdleStreamsHoldNothingButWhatIsCachedAndEnd) {
  Config config = SmallConfig();
  config.limits.series_idle_timeout = absl::Seconds(40);
  StartServer({}, config);
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  ASSERT_TRUE(series.Step(Changed(a_, 1e-6, 1), b_, &answer));
  WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
  // The factor, the matrix of the last step, and the solution; all of it can be evicted.
  const Holdings held = Held();
  EXPECT_EQ(held.factors, 3u);
  EXPECT_EQ(held.device_reserved, core().cache.EvictableBytes(*core().devices.slots()[0]));
  EXPECT_EQ(held.uploads, 0);
  // A step after 35 s is fine, twice.
  for (int step = 0; step < 2; ++step) {
    failpoints().AwaitReached("call.sent", 2 + step);
    PassTime(absl::Seconds(35));
    ASSERT_TRUE(series.Step(Changed(a_, 1e-6, 2 + step), b_, &answer));
  }
  failpoints().AwaitReached("call.sent", 4);
  PassTime(absl::Seconds(45));
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), HasSubstr("take the series up again"));
  WaitUntil([&] { return Idle().factors == 1; }, "the parts between the steps to go");
}

TEST_F(RpcSeriesTest, EvictedPartsComeBack) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  const std::vector<double> next = Changed(a_, 1e-6, 1);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
  // To host memory, from where they come back.
  DeviceSlot& slot = *core().devices.slots()[0];
  const auto all = core().cache.ReserveOnDevice(slot, slot.budget->limit());
  ASSERT_TRUE(all.ok());
  { const Reservation taken = std::move(const_cast<Reservation&>(*all)); }
  ASSERT_TRUE(series.Step({}, b_, &answer)) << series.Status().error_message();
  ExpectSolved(answer, next, b_);
}

TEST_F(RpcSeriesTest, DroppedPartsAreMissedOnceAndKeptAgain) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  const auto handle = Handle::Parse(answer.factor->handle());
  ASSERT_TRUE(handle.has_value());
  ASSERT_TRUE(series.Step(Changed(a_, 1e-6, 1), b_, &answer));
  const auto drop_the_idle = [&] {
    WaitUntil([&] { return Held().streams_busy == 0; }, "the step's stream");
    // The factor is in use; all else goes to host memory, and from there.
    const auto pin = core().cache.Acquire("default", *handle);
    ASSERT_TRUE(pin.ok());
    DeviceSlot& slot = *core().devices.slots()[0];
    const size_t device = slot.budget->limit() - slot.budget->reserved();
    ASSERT_TRUE(
        core().cache.ReserveOnDevice(slot, device + core().cache.EvictableBytes(slot)).ok());
    MemoryBudget& host = core().devices.host_budget();
    const size_t evicted = core().cache.tiers()[static_cast<size_t>(Tier::kHost)].bytes;
    ASSERT_TRUE(core().cache.ReserveOnHost(host.limit() - host.reserved() + evicted).ok());
    EXPECT_EQ(Held().factors, 1u);
  };
  drop_the_idle();
  const std::vector<double> next = Changed(a_, 1e-6, 2);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  EXPECT_EQ(answer.result.new_iterations(), 0);
  // What that step kept is there.
  ASSERT_TRUE(series.Step({}, b_, &answer)) << series.Status().error_message();
  ExpectSolved(answer, next, b_);
  drop_the_idle();
  EXPECT_FALSE(series.Step({}, b_, &answer));
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("send the step with its matrix"));
}

TEST_F(RpcSeriesTest, CancellationGivesAllBack) {
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

TEST_F(RpcSeriesTest, DrainingEndsStreamsBetweenSteps) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer));
  failpoints().AwaitReached("call.sent");
  core().draining = true;
  stack().Housekeep();
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("draining"));
}

TEST_F(RpcSeriesTest, AnotherCallMayReplaceTheFactor) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Step(a_, b_, &answer, With(v1::SERIES_STRATEGY_REUSE)));
  grpc::ClientContext context;
  auto stream = stub().Refactorize(&context);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(answer.factor->handle());
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  request.set_data(Bytes(Matrix(kN, 7)));
  stream->Write(request);
  stream->WritesDone();
  v1::RefactorizeResponse response;
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());
  // With a matrix the step goes on from the new factor, or makes its own.
  const std::vector<double> next = Changed(a_, 1e-6, 1);
  ASSERT_TRUE(series.Step(next, b_, &answer));
  ExpectSolved(answer, next, b_);
  ASSERT_TRUE(series.Finish().ok());
}

}  // namespace
}  // namespace crout::testing
