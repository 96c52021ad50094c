// SPDX-License-Identifier: Apache-2.0

// Tests ComputeSchurComplement over RPC: S, the cached factor of the leading block, and errors.
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "spdlog/sinks/ringbuffer_sink.h"
#include "spdlog/spdlog.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::schur_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class RpcSchurTest : public RpcTest {
 protected:
  struct Answer {
    grpc::Status status;
    v1::Factor factor;
    v1::ComplementHeader header;
    v1::ComplementResult result;
    std::string data;
    int chunks = 0;
  };

  static v1::ComputeSchurComplementHeader Header(int64_t n, int64_t leading) {
    v1::ComputeSchurComplementHeader header;
    *header.mutable_matrix() = Dense(n, n);
    header.set_leading_order(leading);
    return header;
  }

  Answer Compute(const v1::ComputeSchurComplementHeader& header, const std::string& data) {
    grpc::ClientContext context;
    auto stream = stub().ComputeSchurComplement(&context);
    v1::ComputeSchurComplementRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    Answer answer;
    v1::ComputeSchurComplementResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) answer.factor = response.factor();
      if (response.has_header()) answer.header = response.header();
      if (response.has_result()) answer.result = response.result();
      answer.chunks += !response.data().empty();
      answer.data += response.data();
    }
    answer.status = stream->Finish();
    return answer;
  }

  void ExpectRefused(const v1::ComputeSchurComplementHeader& header, grpc::StatusCode code,
                     const std::string& text) {
    const Answer answer = Compute(header, Bytes({1, 0, 0, 1}));
    EXPECT_EQ(answer.status.error_code(), code) << answer.status.error_message();
    EXPECT_THAT(answer.status.error_message(), HasSubstr(text));
    EXPECT_EQ(answer.factor.handle(), "");
    ExpectHeldSoon(Holdings());
  }
};

TEST_F(RpcSchurTest, ReturnsTheComplementAndACachedFactor) {
  StartServer();
  auto header = Header(2, 1);
  header.mutable_cache()->set_name("leading");
  header.set_solver(v1::SOLVER_TRSM);
  const Answer answer = Compute(header, Bytes({2, 1, 4, 5}));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.data, Bytes({3}));
  EXPECT_EQ(answer.header.complement().rows(), 1);
  EXPECT_EQ(answer.header.complement().cols(), 1);
  EXPECT_EQ(answer.header.complement().dtype(), v1::DTYPE_FLOAT64);
  EXPECT_EQ(answer.result.solver(), v1::SOLVER_TRSM);
  EXPECT_EQ(answer.result.device(), "cuda:0");
  EXPECT_GT(answer.result.timings().total_seconds(), 0);
  EXPECT_EQ(answer.factor.n(), 1);
  EXPECT_EQ(answer.factor.name(), "leading");
  EXPECT_EQ(answer.factor.norm_one(), 2);
  Solved solved;
  ASSERT_TRUE(Solve(answer.factor.handle(), {6}, &solved).ok());
  EXPECT_EQ(solved.x, (std::vector<double>{3}));
  EXPECT_EQ(solved.result.backward_error(), 0);
}

TEST_F(RpcSchurTest, ManyChunksAndEveryOrderOfTheLeadingBlock) {
  constexpr int64_t kN = 600;
  StartServer();
  const std::vector<double> a = Matrix(kN);
  for (const int64_t k : {int64_t{0}, int64_t{1}, kN / 5, kN}) {
    const Answer answer = Compute(Header(kN, k), Bytes(a));
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    const int64_t rest = kN - k;
    EXPECT_EQ(answer.factor.n(), k);
    EXPECT_EQ(answer.header.complement().rows(), rest);
    ASSERT_EQ(answer.data.size(), static_cast<size_t>(rest * rest) * sizeof(double));
    EXPECT_GE(answer.chunks, rest > 400 ? 2 : 0);
    if (k == 0) {
      EXPECT_EQ(answer.data, Bytes(a));
    }
    if (k != 1) continue;
    std::vector<double> s(rest * rest);
    std::memcpy(s.data(), answer.data.data(), answer.data.size());
    for (int64_t j = 0; j < rest; ++j) {
      for (int64_t i = 0; i < rest; ++i) {
        const double expected = a[i + 1 + (j + 1) * kN] - a[i + 1] * (a[(j + 1) * kN] / a[0]);
        EXPECT_NEAR(s[i + j * rest], expected, 1e-12);
      }
    }
  }
}

TEST_F(RpcSchurTest, TheComplementOfATextIsColumnMajor) {
  StartServer();
  auto header = Header(0, 1);
  header.mutable_matrix()->mutable_matrix_market()->set_dtype(v1::DTYPE_FLOAT32);
  const Answer answer = Compute(header,
                                "%%MatrixMarket matrix coordinate real general\n3 3 6\n1 1 2\n"
                                "2 1 4\n2 2 5\n1 3 1\n3 3 8\n3 2 7\n");
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_EQ(answer.header.complement().dtype(), v1::DTYPE_FLOAT32);
  const std::vector<float> expected = {5, 7, -2, 8};
  EXPECT_EQ(answer.data, std::string(reinterpret_cast<const char*>(expected.data()), 16));
  EXPECT_FALSE(answer.factor.has_nnz());
}

TEST_F(RpcSchurTest, ASingularLeadingBlockIsCachedAndReported) {
  StartServer();
  const Answer answer = Compute(Header(2, 1), Bytes({0, 1, 1, 1}));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(answer.status.error_details(), HasSubstr("SINGULAR"));
  EXPECT_EQ(answer.factor.info(), 1);
  EXPECT_NE(answer.factor.handle(), "");
  EXPECT_EQ(answer.data, "");
  EXPECT_FALSE(answer.header.has_complement());
}

// The reply and the metrics report iterations, as for Factorize.
TEST_F(RpcSchurTest, ReportsTheIterationsOfItsMethod) {
  constexpr int64_t kLeading = 4;
  StartServer();
  auto header = Header(2 * kLeading, kLeading);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_ICMPP);
  header.mutable_options()->mutable_parameters()->set_section_size(2);
  const Answer answer = Compute(header, Bytes(Matrix(2 * kLeading)));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const v1::Iterations& iterations = answer.factor.iterations();
  EXPECT_EQ(iterations.sections(), 2);
  EXPECT_EQ(iterations.sweeps_size(), 4);
  EXPECT_EQ(iterations.pivots_size(), 2);
  const std::string scrape = core().metrics.Scrape();
  constexpr char kLabels[] = "{algorithm=\"icmpp\",start=\"cold\"}";
  EXPECT_GT(iterations.total_sweeps(), 0);
  EXPECT_EQ(SampleOf(scrape, absl::StrCat("crout_iterations_total", kLabels)),
            iterations.total_sweeps());
  EXPECT_EQ(SampleOf(scrape, absl::StrCat("crout_sections_total", kLabels)), 4);
}

TEST_F(RpcSchurTest, RefusesInvalidRequests) {
  constexpr auto kInvalid = grpc::StatusCode::INVALID_ARGUMENT;
  StartServer();
  ExpectRefused(Header(2, -1), kInvalid, "header.leading_order: -1 is negative");
  ExpectRefused(Header(2, 3), kInvalid, "header.leading_order: 3, but the matrix has order 2");
  ExpectRefused(Header(2, int64_t{1} << 62), kInvalid, "the largest dimension of a matrix here");
  auto header = Header(2, 1);
  header.mutable_matrix()->mutable_dense()->set_cols(1);
  ExpectRefused(header, kInvalid, "header.matrix");
  header = Header(2, 1);
  header.mutable_cache()->set_request_id("once");
  ExpectRefused(header, kInvalid, "header.cache.request_id");
  header = Header(2, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_CMPP);
  header.set_solver(v1::SOLVER_GETRS);
  ExpectRefused(header, grpc::StatusCode::FAILED_PRECONDITION, "getrs");
  header = Header(2, 1);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_CROUT_LU);
  ExpectRefused(header, grpc::StatusCode::UNIMPLEMENTED, "crout_lu");
}

TEST_F(RpcSchurTest, NanIsRefusedAndNothingIsCached) {
  StartServer();
  const Answer answer = Compute(Header(2, 1), Bytes({1, 0, 0, NAN}));
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(answer.status.error_message(), HasSubstr("row 1, column 1"));
  ExpectHeldSoon(Holdings());
}

// The log limits these warnings like calls, because any caller can cause them.
class RpcSchurLogTest : public RpcSchurTest {
 protected:
  RpcSchurLogTest() : before_(spdlog::default_logger()) {
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink_));
  }
  ~RpcSchurLogTest() override { spdlog::set_default_logger(before_); }

  // Returns the warnings that a poor factor and a poor complement cause in the log.
  std::vector<std::string> Warnings(LogCalls calls) {
    Config config = SmallConfig();
    config.call_log.calls = calls;
    StartServer({}, config);
    std::vector<double> a = Matrix(30);
    a[0] = 1e-12;
    auto header = Header(30, 10);
    header.mutable_options()->set_algorithm(v1::ALGORITHM_CM);
    header.set_solver(v1::SOLVER_TRSM);
    EXPECT_TRUE(Compute(header, Bytes(a)).status.ok());
    Idle();
    std::vector<std::string> warnings;
    for (const std::string& line : sink_->last_formatted()) {
      if (line.find("poor_") != std::string::npos) warnings.push_back(line);
    }
    return warnings;
  }

 private:
  const std::shared_ptr<spdlog::sinks::ringbuffer_sink_mt> sink_ =
      std::make_shared<spdlog::sinks::ringbuffer_sink_mt>(100);
  const std::shared_ptr<spdlog::logger> before_;
};

TEST_F(RpcSchurLogTest, WarnsWithTheCalls) {
  EXPECT_THAT(Warnings(LogCalls::kAll),
              ElementsAre(HasSubstr("poor_factor"), HasSubstr("poor_complement")));
}

TEST_F(RpcSchurLogTest, DoesNotWarnWithoutThem) {
  EXPECT_THAT(Warnings(LogCalls::kNone), IsEmpty());
}

TEST_F(RpcSchurTest, ReportsTheAccuracyOfS) {
  constexpr int64_t kN = 30;
  StartServer();
  std::vector<double> a = Matrix(kN);
  const Answer good = Compute(Header(kN, 10), Bytes(a));
  ASSERT_TRUE(good.status.ok()) << good.status.error_message();
  EXPECT_GT(good.result.backward_error(), 0);
  EXPECT_LT(good.result.backward_error(), 1e-15);
  EXPECT_LT(good.result.growth(), 10);
  EXPECT_THAT(good.result.warnings(), IsEmpty());

  a[0] = 1e-12;
  auto header = Header(kN, 10);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_CM);
  header.set_solver(v1::SOLVER_TRSM);
  const Answer poor = Compute(header, Bytes(a));
  ASSERT_TRUE(poor.status.ok()) << poor.status.error_message();
  EXPECT_GT(poor.result.backward_error(), 1e-12);
  EXPECT_GT(poor.result.growth(), 1e6);
  EXPECT_THAT(poor.result.warnings(), ElementsAre(v1::WARNING_POOR_COMPLEMENT));
  EXPECT_THAT(poor.factor.warnings(), ElementsAre(v1::WARNING_POOR_FACTOR));
  const std::string scrape = core().metrics.Scrape();
  for (const char* result : {"factor", "complement"}) {
    EXPECT_THAT(scrape, HasSubstr("crout_poor_results_total{algorithm=\"cm\",result=\"" +
                                  std::string(result) + "\"} 1"));
  }

  const Answer none = Compute(Header(kN, kN), Bytes(Matrix(kN)));
  EXPECT_FALSE(none.result.has_backward_error());
  EXPECT_FALSE(none.result.has_growth());
}

TEST_F(RpcSchurTest, IsCountedUnderItsName) {
  StartServer();
  ASSERT_TRUE(Compute(Header(2, 1), Bytes({1, 0, 0, 1})).status.ok());
  WaitUntil(
      [this] {
        return core().metrics.Scrape().find(
                   R"(crout_requests_total{code="OK",method="ComputeSchurComplement"} 1)") !=
               std::string::npos;
      },
      "counted");
}

}  // namespace
}  // namespace crout::testing::schur_test
