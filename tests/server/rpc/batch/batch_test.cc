// SPDX-License-Identifier: Apache-2.0

// Tests calls with batches: many matrices with one handle.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::batch_test {
namespace {

using grpc::StatusCode;

TEST_F(RpcBatchTest, FactorsAndSolvesByMember) {
  const std::vector<Member> members = Mixed();
  const Factored factored = Factor(members);
  ASSERT_TRUE(factored.status.ok()) << factored.status.error_message();
  const v1::Factor& factor = factored.factor;
  EXPECT_EQ(factor.algorithm(), v1::ALGORITHM_IRR_LU);
  EXPECT_EQ(factor.n(), 40);
  EXPECT_EQ(factor.batch().members(), 5);
  EXPECT_EQ(factor.batch().total_rows(), 5 + 1 + 40 + 7);
  EXPECT_EQ(factor.batch().total_cols(), 5 + 1 + 40 + 3);
  EXPECT_EQ(factor.batch().singular(), 0);
  EXPECT_TRUE(factor.has_matrix());
  EXPECT_LT(factor.quality(), 30);
  ASSERT_EQ(factored.figures.size(), 5 * (2 * sizeof(double) + sizeof(int32_t)));
  EXPECT_EQ(Array<double>(factored.figures, 0, 5)[2], 1);  // the growth of the empty member
  EXPECT_EQ(Array<int32_t>(factored.figures, 80, 5), (std::vector<int32_t>{0, 0, 0, 0, 0}));

  const std::vector<Member> rhs = {Random(5, 2, 11), Random(40, 3, 12)};
  const SolvedSystems solved = SolveMembers(factor.handle(), {0, 3}, rhs);
  ASSERT_TRUE(solved.status.ok()) << solved.status.error_message();
  for (size_t k = 0; k < rhs.size(); ++k) {
    const Member& a = members[k == 0 ? 0 : 3];
    const double error =
        BackwardError(a.values, a.rows, Op::kNone, solved.x[k], rhs[k].values, rhs[k].cols);
    EXPECT_LT(error, 1e-14);
    EXPECT_NEAR(solved.errors[k], error, 1e-15);
    EXPECT_EQ(solved.info[k], 0);
  }
  EXPECT_EQ(solved.result.backward_error(), std::max(solved.errors[0], solved.errors[1]));
  EXPECT_EQ(solved.result.factor_version(), 1);
  EXPECT_GT(solved.result.timings().total_seconds(), 0);
}

TEST_F(RpcBatchTest, TheServerListsItsBatchAlgorithms) {
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(stub().GetServerInfo(&context, {}, &info).ok());
  EXPECT_THAT(info.devices(0).batch_algorithms(), ::testing::ElementsAre(v1::ALGORITHM_IRR_LU));
  EXPECT_THAT(info.devices(0).algorithms(),
              ::testing::Not(::testing::Contains(v1::ALGORITHM_IRR_LU)));
}

TEST_F(RpcBatchTest, ASingularMemberAffectsOnlyItself) {
  std::vector<Member> members = Mixed();
  members[1].values[0] = 0;
  const Factored factored = Factor(members);
  ASSERT_TRUE(factored.status.ok());
  EXPECT_EQ(factored.factor.batch().singular(), 1);
  EXPECT_EQ(factored.factor.info(), 0);
  const SolvedSystems solved =
      SolveMembers(factored.factor.handle(), {0, 1}, {Random(5, 1, 1), Random(1, 1, 2)});
  ASSERT_TRUE(solved.status.ok());
  EXPECT_EQ(solved.info, (std::vector<int32_t>{0, 1}));
  EXPECT_TRUE(std::isnan(solved.x[1][0]));
  EXPECT_EQ(solved.result.batch().singular(), 1);
  EXPECT_EQ(solved.result.backward_error(), solved.errors[0]);
}

TEST_F(RpcBatchTest, ABatchIsReplacedByOneOfTheSameSizes) {
  std::vector<Member> members = Mixed();
  const std::string handle = Factor(members).factor.handle();
  members[0] = Random(5, 5, 77);
  const Factored next = Refactor(handle, members);
  ASSERT_TRUE(next.status.ok()) << next.status.error_message();
  EXPECT_EQ(next.factor.handle(), handle);
  EXPECT_EQ(next.factor.version(), 2);
  const std::vector<Member> rhs = {Random(5, 1, 5)};
  const SolvedSystems solved = SolveMembers(handle, {0}, rhs);
  EXPECT_LT(BackwardError(members[0].values, 5, Op::kNone, solved.x[0], rhs[0].values, 1), 1e-14);
  members.pop_back();
  ExpectRefused(Refactor(handle, members).status, StatusCode::FAILED_PRECONDITION, "has 5 members");
}

TEST_F(RpcBatchTest, CallsRefuseFactorsOfTheOtherKind) {
  const std::string batch = Factor(Mixed()).factor.handle();
  v1::Factor dense;
  ASSERT_TRUE(Factorize(5, &dense).ok());
  RpcTest::Solved solved;
  ExpectRefused(Solve(batch, std::vector<double>(40), &solved), StatusCode::FAILED_PRECONDITION,
                "header.rhs: the factor is of a batch");
  ExpectRefused(SolveMembers(dense.handle(), {0}, {Random(5, 1, 1)}).status,
                StatusCode::FAILED_PRECONDITION, "single matrix");
  ExpectRefused(Refactor(dense.handle(), Mixed()).status, StatusCode::FAILED_PRECONDITION,
                "header.matrix: the handle belongs to a single matrix");
  grpc::ClientContext of_matrix;
  auto refactorize = stub().Refactorize(&of_matrix);
  v1::RefactorizeRequest request;
  request.mutable_header()->set_handle(batch);
  *request.mutable_header()->mutable_matrix() = Dense(40, 40);
  refactorize->WriteLast(request, {});
  v1::RefactorizeResponse response;
  EXPECT_FALSE(refactorize->Read(&response));
  ExpectRefused(refactorize->Finish(), StatusCode::FAILED_PRECONDITION,
                "header.matrix: the handle belongs to a batch");
  grpc::ClientContext of_series;
  v1::SolveSeriesRequest step;
  step.mutable_header()->set_handle(batch);
  *step.mutable_header()->mutable_rhs() = Dense(40, 1);
  auto series = stub().SolveSeries(&of_series);
  series->Write(step);
  v1::SolveSeriesResponse none;
  EXPECT_FALSE(series->Read(&none));
  ExpectRefused(series->Finish(), StatusCode::FAILED_PRECONDITION, "belongs to a batch");
}

TEST_F(RpcBatchTest, OptionsThatBatchesLackAreRefused) {
  const Encoded batch = Encode(Mixed());
  const auto refused = [&](const std::function<void(v1::FactorizeOptions&)>& change,
                           const std::string& field) {
    v1::FactorizeHeader header = HeaderOf(batch);
    change(*header.mutable_options());
    ExpectRefused(FactorWith(header, batch.data).status, StatusCode::INVALID_ARGUMENT,
                  "header.options." + field);
  };
  refused([](v1::FactorizeOptions& o) { o.set_algorithm(v1::ALGORITHM_GETRF); }, "algorithm");
  refused([](v1::FactorizeOptions& o) { o.set_factor_dtype(v1::DTYPE_FLOAT32); }, "factor_dtype");
  refused([](v1::FactorizeOptions& o) { o.set_precision(v1::FACTOR_PRECISION_AUTO); }, "precision");
  refused([](v1::FactorizeOptions& o) { o.set_equilibrate(v1::EQUILIBRATE_ON); }, "equilibrate");
  refused([](v1::FactorizeOptions& o) { o.mutable_parameters(); }, "parameters");
  refused([](v1::FactorizeOptions& o) { o.set_pivot_threshold(0.5); }, "pivot_threshold");
  refused([](v1::FactorizeOptions& o) { o.set_condition(true); }, "condition");
  refused([](v1::FactorizeOptions& o) { o.set_determinant(true); }, "determinant");
  v1::FactorizeHeader named = HeaderOf(batch);
  named.mutable_options()->set_algorithm(v1::ALGORITHM_IRR_LU);
  const Factored factored = FactorWith(named, batch.data);
  ASSERT_TRUE(factored.status.ok()) << factored.status.error_message();
  const std::vector<Member> rhs = {Random(5, 1, 1)};
  const Encoded encoded = Encode(rhs, {0});
  const auto unsolved = [&](const std::function<void(v1::SolveOptions&)>& change,
                            const std::string& field) {
    v1::SolveHeader header = Header(factored.factor.handle(), encoded);
    change(*header.mutable_options());
    ExpectRefused(SolveWith(header, encoded.data, rhs).status, StatusCode::INVALID_ARGUMENT,
                  "header.options." + field);
  };
  unsolved([](v1::SolveOptions& o) { o.set_solver(v1::SOLVER_TRSM); }, "solver");
  unsolved([](v1::SolveOptions& o) { o.set_error_bound(true); }, "error_bound");
  unsolved([](v1::SolveOptions& o) { o.set_max_refinement_steps(1); }, "max_refinement_steps");
  unsolved([](v1::SolveOptions& o) { o.set_solver_tolerance(0.1); }, "solver_tolerance");
  unsolved([](v1::SolveOptions& o) { o.set_componentwise_error(true); }, "componentwise_error");
  unsolved([](v1::SolveOptions& o) { o.set_refine_componentwise(true); }, "refine_componentwise");
}

TEST_F(RpcBatchTest, WrongDeclarationsAreRefused) {
  const Encoded good = Encode(Mixed());
  const auto refused = [&](const std::function<void(v1::FactorizeHeader&)>& change,
                           const std::string& data, const std::string& text) {
    v1::FactorizeHeader header = HeaderOf(good);
    change(header);
    ExpectRefused(FactorWith(header, data).status, StatusCode::INVALID_ARGUMENT, text);
    ExpectHeldSoon(before_);
  };
  const auto spec = [&](const std::function<void(v1::BatchSpec&)>& change,
                        const std::string& text) {
    refused([&](v1::FactorizeHeader& header) { change(*header.mutable_matrix()->mutable_batch()); },
            good.data, text);
  };
  spec([](v1::BatchSpec& s) { s.set_members(-1); }, "header.matrix.batch.members");
  spec([](v1::BatchSpec& s) { s.set_members(int64_t{1} << 31); }, "header.matrix.batch.members");
  spec([](v1::BatchSpec& s) { s.set_max_rows(4097); }, "max_n");
  spec([](v1::BatchSpec& s) { s.set_max_cols(-1); }, "header.matrix.batch.max_cols");
  spec([](v1::BatchSpec& s) { s.set_total_rows(-1); }, "contradict");
  spec([](v1::BatchSpec& s) { s.set_total_cols(int64_t{1} << 61); }, "contradict");
  spec([](v1::BatchSpec& s) { s.set_total_cols(s.total_cols() - 1); }, "total_cols");
  spec([](v1::BatchSpec& s) { s.set_value_bytes(-8); }, "value_bytes");
  spec([](v1::BatchSpec& s) { s.set_value_bytes(s.value_bytes() + 1); }, "value_bytes");
  spec([](v1::BatchSpec& s) { s.set_value_bytes(INT64_MAX - 7); }, "header.matrix.batch");
  spec([](v1::BatchSpec& s) { s.set_dtype(static_cast<v1::Dtype>(9)); }, "unknown type");
  spec([](v1::BatchSpec& s) { s.set_max_rows(41); }, "the header declares 41");
  spec([](v1::BatchSpec& s) { s.set_value_bytes(s.value_bytes() + 16); }, "bytes");
  refused([](v1::FactorizeHeader&) {}, good.data.substr(8), "bytes");
  refused([](v1::FactorizeHeader&) {}, good.data + "12345678", "more bytes");
  refused([](v1::FactorizeHeader& h) { h.mutable_cache()->set_request_id(std::string(129, 'a')); },
          good.data, "request_id");
  // An invalid size.
  std::string data = good.data;
  const int64_t negative = -5;
  std::memcpy(data.data(), &negative, sizeof(negative));
  refused([](v1::FactorizeHeader&) {}, data, "member 0 is -5 x 5");
  // Sizes that are valid individually but overflow in sum.
  const std::vector<int64_t> largest(2 * 5, INT32_MAX);
  std::memcpy(data.data(), largest.data(), largest.size() * sizeof(int64_t));
  refused([](v1::FactorizeHeader&) {}, data, "together overflows");
}

TEST_F(RpcBatchTest, SystemsMustMatchTheBatch) {
  const std::string handle = Factor(Mixed()).factor.handle();
  const Holdings held = Idle();
  const auto refused = [&](const std::vector<int64_t>& members, const std::vector<Member>& rhs,
                           const std::string& text) {
    ExpectRefused(SolveMembers(handle, members, rhs).status, StatusCode::INVALID_ARGUMENT, text);
    ExpectHeldSoon(held);
  };
  refused({5}, {Random(5, 1, 1)}, "members 0 to 4");
  refused({3, 0}, {Random(40, 1, 1), Random(5, 1, 1)}, "ascending");
  refused({4}, {Random(7, 1, 1)}, "7 x 3");
  refused({0}, {Random(6, 1, 1)}, "declares");
  const Encoded rhs = Encode({Random(5, 1, 1)}, {0});
  v1::SolveHeader header = Header(handle, rhs);
  header.mutable_rhs()->mutable_batch_rhs()->set_dtype(v1::DTYPE_FLOAT32);
  ExpectRefused(SolveWith(header, rhs.data, {}).status, StatusCode::INVALID_ARGUMENT,
                "the batch is f64");
  header = Header(handle, rhs);
  header.mutable_rhs()->mutable_batch_rhs()->set_systems(6);
  ExpectRefused(SolveWith(header, rhs.data, {}).status, StatusCode::INVALID_ARGUMENT,
                "header.rhs.batch_rhs.systems: right-hand sides for 6 members of a batch of 5");
  header = Header(handle, rhs);
  header.mutable_rhs()->mutable_batch_rhs()->set_value_bytes(INT64_MAX - 7);
  ExpectRefused(SolveWith(header, rhs.data, {}).status, StatusCode::INVALID_ARGUMENT,
                "header.rhs.batch_rhs.value_bytes: ");
  header = Header(handle, rhs);
  header.mutable_options()->set_operation(static_cast<v1::Operation>(7));
  ExpectRefused(SolveWith(header, rhs.data, {}).status, StatusCode::INVALID_ARGUMENT, "operation");
  header = Header("7777777777777777777777777q", rhs);
  ExpectRefused(SolveWith(header, rhs.data, {}).status, StatusCode::NOT_FOUND, "");
}

TEST_F(RpcBatchTest, WithoutItsMatricesABatchIsNotVerified) {
  const Encoded batch = Encode(Mixed());
  v1::FactorizeHeader header = HeaderOf(batch);
  header.mutable_options()->set_keep_matrix(false);
  const Factored dropped = FactorWith(header, batch.data);
  ASSERT_TRUE(dropped.status.ok());
  EXPECT_FALSE(dropped.factor.has_matrix());
  const Encoded rhs = Encode({Random(5, 1, 1)}, {0});
  const SolvedSystems solved =
      SolveWith(Header(dropped.factor.handle(), rhs), rhs.data, {Random(5, 1, 1)});
  ASSERT_TRUE(solved.status.ok());
  EXPECT_FALSE(solved.result.has_backward_error());
  EXPECT_TRUE(std::isnan(solved.errors[0]));
}

TEST_F(RpcBatchTest, ABatchMovesToHostMemoryAndBack) {
  const std::vector<Member> members = Mixed();
  const std::string handle = Factor(members).factor.handle();
  const std::vector<Member> rhs = {Random(40, 2, 3)};
  const SolvedSystems before = SolveMembers(handle, {3}, rhs);
  Idle();  // a call that has been answered may still hold the factor
  {
    DeviceSlot& slot = *core().engine.devices.slots()[0];
    ASSERT_OK(core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
  }
  const SolvedSystems after = SolveMembers(handle, {3}, rhs);
  ASSERT_TRUE(after.status.ok()) << after.status.error_message();
  EXPECT_FALSE(before.result.promoted());
  EXPECT_TRUE(after.result.promoted());
  EXPECT_EQ(after.x, before.x);
}

TEST_F(RpcBatchTest, ACancelledBatchLeavesNothing) {
  failpoints().Hold("factorize.factor");
  grpc::ClientContext context;
  std::thread cancel([&] {
    failpoints().AwaitReached("factorize.factor");
    context.TryCancel();
  });
  const Encoded batch = Encode(Mixed());
  const Factored factored = FactorWith(HeaderOf(batch), batch.data, &context);
  cancel.join();
  EXPECT_EQ(factored.status.error_code(), StatusCode::CANCELLED);
  WaitUntil(
      [&] {
        const std::string series = "crout_requests_total{code=\"CANCELLED\",method=\"Factorize\"}";
        return SampleOf(core().metrics.Scrape(), series).value_or(0) == 1;
      },
      "the server knows that the call is cancelled");
  failpoints().Release("factorize.factor");
  ExpectHeldSoon(before_);
}

TEST_F(RpcBatchTest, AHundredThousandMembersInOneCall) {
  std::vector<Member> members;
  for (int64_t k = 0; k < 100'000; ++k) members.push_back(Random(k % 3, k % 3, k % 7));
  const Factored factored = Factor(members);
  ASSERT_TRUE(factored.status.ok()) << factored.status.error_message();
  EXPECT_EQ(factored.factor.batch().members(), 100'000);
  const SolvedSystems solved = SolveMembers(factored.factor.handle(), {99'998}, {Random(2, 1, 1)});
  ASSERT_TRUE(solved.status.ok());
  EXPECT_LT(solved.errors[0], 1e-14);
}

}  // namespace
}  // namespace crout::testing::batch_test
