// SPDX-License-Identifier: Apache-2.0

// Tests SolveSeries with initial guesses that the client sends with a step.
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/series/series_fixture.h"

namespace crout::testing::series_start_test {
namespace {

using ::testing::HasSubstr;

class RpcSeriesStartTest : public RpcSeriesTest {
 protected:
  static v1::SolveSeriesRequest First(const std::vector<double>& a, const std::vector<double>& b) {
    v1::SolveSeriesRequest request;
    *request.mutable_header() = With(v1::SERIES_STRATEGY_UPDATE);
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
    request.set_data(Bytes(a));
    request.set_rhs_data(Bytes(b));
    return request;
  }
  static void SetStart(const std::vector<double>& x0, v1::SolveSeriesRequest* request) {
    *request->mutable_header()->mutable_x0() = Dense(kN, static_cast<int64_t>(x0.size()) / kN);
    request->set_x0_data(Bytes(x0));
  }
  // Runs `second` as the second step of a new stream.
  void SolveSecond(const v1::SolveSeriesRequest& second, Answer* answer) {
    Series series(stub());
    ASSERT_TRUE(series.Write(First(a_, b_)) && series.Receive(answer));
    ASSERT_TRUE(series.Write(second) && series.Receive(answer)) << series.Status().error_message();
    ASSERT_TRUE(series.Finish().ok());
  }
};

TEST_F(RpcSeriesStartTest, ItsSolutionSolvesAStepWithoutIteration) {
  StartServer();
  const std::vector<double> next = Changed(a_, 1e-5, 1);
  const std::vector<double> b = RandomMatrix(kN, 2, 9);
  const std::function<void(v1::SolveSeriesRequest&)> matrices[] = {
      [&](auto& r) {
        *r.mutable_header()->mutable_matrix() = Dense(kN, kN);
        r.set_data(Bytes(next));
      },
      [](auto&) {},
      [](auto& r) {
        r.mutable_header()->mutable_change()->set_entries(1);
        r.set_data(Concatenate(std::vector<double>{0.5}, std::vector<int32_t>{2, 1}));
      },
      [](auto& r) {
        r.mutable_header()->mutable_change()->set_rank(1);
        r.set_data(Concatenate(RandomMatrix(kN, 1, 7), RandomMatrix(1, kN, 8)));
      },
  };
  for (const auto& bring : matrices) {
    v1::SolveSeriesRequest second;
    bring(second);
    *second.mutable_header()->mutable_rhs() = Dense(kN, 2);
    second.set_rhs_data(Bytes(b));
    Answer expected;
    SolveSecond(second, &expected);
    EXPECT_GT(expected.result.old_iterations(), 0);
    SetStart(expected.x, &second);
    Answer answer;
    SolveSecond(second, &answer);
    // An update of the factor counts as one iteration.
    const bool updates = second.header().change().has_rank();
    EXPECT_EQ(answer.result.old_iterations(), updates ? 1 : 0);
    EXPECT_EQ(answer.result.new_iterations(), 0);
    EXPECT_TRUE(answer.result.accurate());
    EXPECT_EQ(answer.x, expected.x);
  }
}

TEST_F(RpcSeriesStartTest, AppliesOnlyToItsStep) {
  StartServer();
  Series series(stub());
  Answer answer;
  ASSERT_TRUE(series.Write(First(a_, b_)) && series.Receive(&answer));
  const std::vector<double> next = Changed(a_, 1e-6, 1);
  v1::SolveSeriesRequest second = First(next, b_);
  second.mutable_header()->clear_strategy();
  SetStart(RandomMatrix(kN, 2, 11), &second);
  ASSERT_TRUE(series.Write(second) && series.Receive(&answer));
  ExpectSolved(answer, next, b_);
  const std::vector<double> x = answer.x;
  ASSERT_TRUE(series.Step({}, b_, &answer));
  EXPECT_EQ(answer.result.old_iterations(), 0);
  EXPECT_EQ(answer.x, x);
  EXPECT_TRUE(series.Finish().ok());
}

TEST_F(RpcSeriesStartTest, OfARealMatrixIsComplexWhereBIs) {
  StartServer();
  const auto complex = [](v1::MatrixSpec* spec) {
    *spec = Dense(kN, 1);
    spec->mutable_dense()->set_dtype(v1::DTYPE_COMPLEX128);
  };
  v1::SolveSeriesRequest second;
  complex(second.mutable_header()->mutable_rhs());
  second.set_rhs_data(Bytes(b_));
  Answer expected;
  SolveSecond(second, &expected);
  EXPECT_GT(expected.result.old_iterations(), 0);
  complex(second.mutable_header()->mutable_x0());
  second.set_x0_data(Bytes(expected.x));
  Answer answer;
  SolveSecond(second, &answer);
  EXPECT_EQ(answer.result.old_iterations(), 0);
  EXPECT_EQ(answer.x, expected.x);
}

TEST_F(RpcSeriesStartTest, InvalidStartsAreRefusedAndLeaveNothing) {
  StartServer();
  struct Case {
    const char* what;
    std::function<void(v1::SolveSeriesRequest&)> spoil;
    const char* message;
  };
  const Case cases[] = {
      {"a row more", [](auto& r) { *r.mutable_header()->mutable_x0() = Dense(kN + 1, 2); },
       "header.x0"},
      {"a column less", [](auto& r) { *r.mutable_header()->mutable_x0() = Dense(kN, 1); },
       "40 x 2, f64"},
      {"another type",
       [](auto& r) {
         r.mutable_header()->mutable_x0()->mutable_dense()->set_dtype(v1::DTYPE_FLOAT32);
       },
       "40 x 2, f64"},
      {"complex",
       [](auto& r) {
         r.mutable_header()->mutable_x0()->mutable_dense()->set_dtype(v1::DTYPE_COMPLEX128);
       },
       "40 x 2, f64"},
      {"a negative size", [](auto& r) { *r.mutable_header()->mutable_x0() = Dense(-1, 2); },
       "header.x0"},
      {"a size that overflows",
       [](auto& r) { *r.mutable_header()->mutable_x0() = Dense(int64_t{1} << 62, 2); },
       "header.x0"},
      {"a text", [](auto& r) { *r.mutable_header()->mutable_x0() = Text(); }, "header.x0"},
      {"no format", [](auto& r) { r.mutable_header()->mutable_x0()->Clear(); }, "header.x0"},
      {"no right-hand side",
       [](auto& r) {
         r.mutable_header()->clear_rhs();
         r.clear_rhs_data();
       },
       "header.rhs"},
      {"right-hand sides that do not come", [](auto& r) { r.clear_rhs_data(); }, "header.rhs"},
      {"no bytes", [](auto& r) { r.clear_x0_data(); }, "header.x0"},
      {"a byte too few", [](auto& r) { r.mutable_x0_data()->pop_back(); }, "header.x0"},
      {"a byte too much", [](auto& r) { r.mutable_x0_data()->push_back('x'); }, "more bytes"},
      {"bytes that no header declares", [](auto& r) { r.mutable_header()->clear_x0(); },
       "more bytes"},
      {"NaN",
       [](auto& r) {
         std::vector<double> x0(2 * kN, 1);
         x0[kN + 3] = std::numeric_limits<double>::quiet_NaN();
         r.set_x0_data(Bytes(x0));
       },
       "start has a NaN or Inf at row 3, column 1"},
  };
  const Holdings before = Idle();
  for (const Case& c : cases) {
    for (const bool first : {true, false}) {
      SCOPED_TRACE(absl::StrCat(c.what, first ? ", at first" : ", later"));
      std::string handle;
      {
        Series series(stub());
        Answer answer;
        v1::SolveSeriesRequest request = First(a_, b_);
        if (!first) {
          ASSERT_TRUE(series.Write(request) && series.Receive(&answer));
          handle = answer.factor->handle();
          request.mutable_header()->clear_strategy();
        }
        SetStart(std::vector<double>(2 * kN, 1), &request);
        c.spoil(request);
        series.Write(request);
        series.HalfClose();
        // The server detects excess data when the step is complete.
        while (series.Receive(&answer)) {
          if (answer.factor) handle = answer.factor->handle();
        }
        const grpc::Status status = series.Status();
        EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
        EXPECT_THAT(status.error_message(), HasSubstr(c.message));
      }
      if (!handle.empty()) {
        v1::ReleaseFactorRequest release;
        release.set_handle(handle);
        v1::ReleaseFactorResponse response;
        grpc::ClientContext context;
        EXPECT_TRUE(stub().ReleaseFactor(&context, release, &response).ok());
      }
      ExpectHeldSoon(before);
    }
  }
}

TEST_F(RpcSeriesStartTest, FollowsTheRightHandSides) {
  StartServer();
  Series series(stub());
  v1::SolveSeriesRequest request = First(a_, b_);
  SetStart(b_, &request);
  request.clear_rhs_data();
  request.mutable_x0_data()->resize(8);
  ASSERT_TRUE(series.Write(request));
  const grpc::Status status = series.Status();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("header.rhs"));
}

TEST_F(RpcSeriesStartTest, IsRefusedInOtherCalls) {
  StartServer();
  grpc::ClientContext context;
  auto stream = stub().FactorizeAndSolve(&context);
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  *request.mutable_header()->mutable_rhs() = Dense(kN, 2);
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(
      v1::SolveSeriesRequest::kX0DataFieldNumber, "x");
  ASSERT_TRUE(stream->Write(request));
  v1::FactorizeAndSolveResponse response;
  while (stream->Read(&response)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("x0_data"));
}

}  // namespace
}  // namespace crout::testing::series_start_test
