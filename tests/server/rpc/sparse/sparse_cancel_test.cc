// SPDX-License-Identifier: Apache-2.0

// Tests that calls with sparse matrices leave nothing behind if they are cancelled during the
// analysis, the numeric factorization or the solve.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "kernels/sparse/analysis.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/server/scrape.h"

namespace crout::testing::sparse_cancel_test {
namespace {

constexpr int64_t kM = 15, kN = kM * kM;

class RpcSparseCancelTest : public RpcSparseTest,
                            public ::testing::WithParamInterface<v1::Algorithm> {
 protected:
  RpcSparseCancelTest() : RpcSparseTest({GetParam()}) {}

  // Sends `request`, waits until the call reaches `failpoint`, cancels it there, and resumes it.
  template <class Stream, class Request>
  void CancelAt(const char* failpoint, grpc::ClientContext& context, Stream stream,
                const Request& request) {
    failpoints().Hold(failpoint);
    const int before = failpoints().reached(failpoint);
    const double refused = CallsRefused(core().metrics.Scrape());
    stream->Write(request);
    stream->WritesDone();
    failpoints().AwaitReached(failpoint, before + 1);
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
    // The client may see the end of the call before the server does.
    WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) == refused + 1; },
              "the server to end the call");
    failpoints().Release(failpoint);
  }

  v1::FactorizeRequest Request(const Triplets& a) const {
    v1::FactorizeRequest request;
    *request.mutable_header() = Header(kN, a);
    request.set_data(BytesOf(a));
    return request;
  }
};

TEST_P(RpcSparseCancelTest, InTheAnalysisAndInTheNumericPhase) {
  Start();
  const Triplets a = Grid(kM);
  for (const char* const failpoint : {"sparse.analyze", "factorize.factor"}) {
    SCOPED_TRACE(failpoint);
    grpc::ClientContext context;
    CancelAt(failpoint, context, stub().Factorize(&context), Request(a));
    ExpectHeldSoon(Holdings());
  }
  // The cancelled calls have stored no analysis.
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  EXPECT_FALSE(factor.sparse().analysis_reused());
  ExpectSolves(factor.handle(), kN, a);
}

TEST_P(RpcSparseCancelTest, BeforeItsTextIsParsed) {
  Start();
  const Triplets a = Grid(kM);
  v1::FactorizeRequest request;
  *request.mutable_header() = Header(kN, a);
  request.mutable_header()->mutable_matrix()->mutable_matrix_market();
  std::string text = absl::StrCat("%%MatrixMarket matrix coordinate real general\n", kN, " ", kN,
                                  " ", a.size(), "\n");
  for (const Triplet& entry : a) {
    absl::StrAppend(&text, entry.row + 1, " ", entry.column + 1, " ", entry.value, "\n");
  }
  request.set_data(text);
  grpc::ClientContext context;
  CancelAt("upload.parse", context, stub().Factorize(&context), request);
  ExpectHeldSoon(Holdings());
  EXPECT_EQ(failpoints().reached("sparse.analyze"), 0) << "it went on";
}

TEST_P(RpcSparseCancelTest, ALongAnalysisReportsItsSteps) {
  Start();
  const Triplets a = Grid(kM);
  failpoints().Do("sparse.analyze", [this] { failpoints().Advance(absl::Seconds(1)); });
  for (const bool known : {false, true}) {
    grpc::ClientContext context;
    const auto stream = stub().Factorize(&context);
    stream->Write(Request(a));
    stream->WritesDone();
    v1::FactorizeResponse response;
    std::vector<int> done;
    while (stream->Read(&response)) {
      if (response.progress().phase() != v1::PHASE_ANALYZE) continue;
      EXPECT_EQ(response.progress().steps(), kAnalysisSteps);
      done.push_back(response.progress().steps_done());
    }
    EXPECT_TRUE(stream->Finish().ok());
    EXPECT_EQ(done.empty(), known) << "a known pattern is not analyzed again";
    EXPECT_TRUE(std::is_sorted(done.begin(), done.end()));
  }
}

TEST_P(RpcSparseCancelTest, InARefactorizationByValues) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  const Holdings held = Idle();
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(factor.handle());
  v1::SparseValuesSpec* const spec = request.mutable_header()->mutable_matrix()->mutable_values();
  spec->set_entries(factor.nnz());
  spec->set_pattern_digest(factor.sparse().pattern_digest());
  request.set_data(Bytes(std::vector<double>(factor.nnz(), 1.0)));
  grpc::ClientContext context;
  CancelAt("factorize.factor", context, stub().Refactorize(&context), request);
  ExpectHeldSoon(held);
  ExpectSolves(factor.handle(), kN, a);
}

TEST_P(RpcSparseCancelTest, InASolve) {
  Start();
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kN, a), a);
  const Holdings held = Idle();
  v1::SolveRequest request;
  request.mutable_header()->set_handle(factor.handle());
  *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
  request.set_data(Bytes(std::vector<double>(kN, 1.0)));
  grpc::ClientContext context;
  CancelAt("solve.run", context, stub().Solve(&context), request);
  ExpectHeldSoon(held);
  ExpectSolves(factor.handle(), kN, a);
}

TEST_P(RpcSparseCancelTest, InAStepOfASeries) {
  Start();
  const Triplets a = Grid(kM);
  v1::SolveSeriesRequest request;
  request.mutable_header()->mutable_options()->set_algorithm(GetParam());
  *request.mutable_header()->mutable_matrix() = Sparse(kN, a);
  *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
  request.set_data(BytesOf(a));
  request.set_rhs_data(Bytes(std::vector<double>(kN, 1.0)));
  for (const char* const failpoint : {"sparse.analyze", "series.step", "factorize.factor"}) {
    SCOPED_TRACE(failpoint);
    grpc::ClientContext context;
    CancelAt(failpoint, context, stub().SolveSeries(&context), request);
    ExpectHeldSoon(Holdings());
  }
}

TEST_P(RpcSparseCancelTest, InASchurComplement) {
  if (GetParam() == v1::ALGORITHM_KLU) GTEST_SKIP() << "leaves none";
  Start();
  const Triplets a = Grid(kM);
  v1::ComputeSchurComplementRequest request;
  *request.mutable_header()->mutable_matrix() = Sparse(kN, a);
  request.mutable_header()->add_keep(7);
  request.set_data(BytesOf(a));
  for (const char* const failpoint : {"sparse.analyze", "factorize.factor"}) {
    SCOPED_TRACE(failpoint);
    grpc::ClientContext context;
    CancelAt(failpoint, context, stub().ComputeSchurComplement(&context), request);
    ExpectHeldSoon(Holdings());
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, RpcSparseCancelTest,
                         ::testing::Values(v1::ALGORITHM_MULTIFRONTAL, v1::ALGORITHM_KLU),
                         [](const auto& info) { return AlgorithmName(info.param); });

}  // namespace
}  // namespace crout::testing::sparse_cancel_test
