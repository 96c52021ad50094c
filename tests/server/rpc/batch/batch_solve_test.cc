// SPDX-License-Identifier: Apache-2.0

// FactorizeAndSolve of batches, and downloads of members by GetFactors.
#include <cmath>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/rpc/batch/batch_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::batch_solve_test {
namespace {

using grpc::StatusCode;

struct BothAnswers {
  grpc::Status status;
  v1::Factor factor;
  std::string figures;
  SolvedSystems solved;
};

struct Downloaded {
  grpc::Status status;
  v1::GetFactorsHeader header;
  std::string data;
};

class RpcBatchSolveTest : public RpcBatchTest {
 protected:
  using RpcBatchTest::HeaderOf;
  static v1::FactorizeAndSolveHeader HeaderOf(const Encoded& batch, const Encoded& rhs) {
    v1::FactorizeAndSolveHeader header;
    *header.mutable_matrix()->mutable_batch() = batch.spec;
    SetRhs(rhs, *header.mutable_rhs());
    return header;
  }

  BothAnswers Call(const v1::FactorizeAndSolveHeader& header, const std::string& data,
                   const std::string& rhs_data, const std::vector<Member>& rhs,
                   grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    auto stream = stub().FactorizeAndSolve(context == nullptr ? &own : context);
    v1::FactorizeAndSolveRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    request.Clear();
    request.set_rhs_data(rhs_data);
    stream->Write(request);
    stream->WritesDone();
    BothAnswers answer;
    std::string reply;
    v1::FactorizeAndSolveResponse response;
    while (stream->Read(&response)) {
      EXPECT_TRUE(response.member_data().empty() || reply.empty()) << "the solution comes last";
      answer.figures += response.member_data();
      reply += response.data();
      if (response.has_factor()) answer.factor = response.factor();
      if (response.has_result()) answer.solved.result = response.result();
    }
    answer.status = stream->Finish();
    if (answer.status.ok()) ReadSystems(reply, rhs, answer.solved);
    return answer;
  }

  Downloaded Download(const std::string& handle, int64_t first = 0, int64_t count = 0,
                      const std::string& tenant = "") {
    grpc::ClientContext context;
    if (!tenant.empty()) context.AddMetadata("crout-tenant", tenant);
    v1::GetFactorsRequest request;
    request.set_handle(handle);
    request.set_first(first);
    request.set_count(count);
    auto stream = stub().GetFactors(&context, request);
    Downloaded downloaded;
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
      if (response.has_header()) downloaded.header = response.header();
      downloaded.data += response.data();
    }
    downloaded.status = stream->Finish();
    return downloaded;
  }

  // Returns the factor ratio (tests/support/ratios.h) of member k of a download. `members` must
  // contain the downloaded members.
  static double Ratio(const Downloaded& downloaded, const std::vector<Member>& members, size_t k) {
    size_t values = members.size() * sizeof(MatrixShape);
    size_t pivots = values + static_cast<size_t>(downloaded.header.batch().value_bytes());
    pivots = (pivots + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
    for (size_t i = 0; i < k; ++i) {
      const size_t bytes = members[i].values.size() * sizeof(double);
      values += (bytes + kMemberAlignment - 1) / kMemberAlignment * kMemberAlignment;
      pivots += static_cast<size_t>(std::min(members[i].rows, members[i].cols)) * sizeof(int32_t);
    }
    const Member& a = members[k];
    const auto lu = Array<double>(downloaded.data, values, a.values.size());
    const auto rows = Array<int32_t>(downloaded.data, pivots, static_cast<size_t>(a.rows));
    return FactorRatio(a.values, a.rows, lu, std::vector<int64_t>(rows.begin(), rows.end()),
                       UnitDiagonal::kL, DType::kFloat64);
  }

  // Returns the indices of the members of Mixed() to solve with.
  static std::vector<int64_t> Systems() { return {0, 1, 3}; }
  static std::vector<Member> Sides() {
    return {Random(5, 2, 11), Random(1, 3, 12), Random(40, 1, 13)};
  }
};

TEST_F(RpcBatchSolveTest, OneCallAnswersLikeFactorizeAndSolve) {
  const Encoded batch = Encode(Mixed());
  const Encoded rhs = Encode(Sides(), Systems());
  v1::FactorizeAndSolveHeader header = HeaderOf(batch, rhs);
  header.mutable_cache()->set_name("both");
  const BothAnswers both = Call(header, batch.data, rhs.data, Sides());
  ASSERT_TRUE(both.status.ok()) << both.status.error_message();
  EXPECT_EQ(both.factor.name(), "both");
  EXPECT_EQ(both.factor.batch().members(), 5);
  EXPECT_EQ(both.solved.result.factor_version(), 1);
  EXPECT_EQ(both.solved.result.device(), "cuda:0");
  EXPECT_GT(both.solved.result.timings().total_seconds(), 0);

  const Factored factored = Factor(Mixed());
  EXPECT_EQ(both.figures, factored.figures);
  EXPECT_EQ(both.factor.pivot_growth(), factored.factor.pivot_growth());
  // Both handles give the same solutions.
  for (const std::string& handle : {factored.factor.handle(), both.factor.handle()}) {
    const SolvedSystems solved = SolveMembers(handle, Systems(), Sides());
    ASSERT_TRUE(solved.status.ok());
    EXPECT_EQ(both.solved.x, solved.x);
    EXPECT_EQ(both.solved.errors, solved.errors);
    EXPECT_EQ(both.solved.info, solved.info);
    EXPECT_EQ(both.solved.result.backward_error(), solved.result.backward_error());
  }
  WaitUntil(
      [&] {
        return SampleOf(core().metrics.Scrape(),
                        "crout_requests_total{code=\"OK\",method=\"FactorizeAndSolve\"}") == 1;
      },
      "the call to be counted");
}

TEST_F(RpcBatchSolveTest, WithoutALeaseNothingIsKept) {
  const Encoded batch = Encode(Mixed());
  const Encoded rhs = Encode(Sides(), Systems());
  v1::FactorizeAndSolveHeader header = HeaderOf(batch, rhs);
  const BothAnswers dropped = Call(header, batch.data, rhs.data, Sides());
  ASSERT_TRUE(dropped.status.ok()) << dropped.status.error_message();
  EXPECT_EQ(dropped.factor.handle(), "");
  EXPECT_LT(dropped.solved.result.backward_error(), 1e-14);
  ExpectHeldSoon(before_);
  header.mutable_solve()->set_verify(false);
  const BothAnswers unverified = Call(header, batch.data, rhs.data, Sides());
  ASSERT_TRUE(unverified.status.ok());
  EXPECT_EQ(unverified.solved.x, dropped.solved.x);
  EXPECT_FALSE(unverified.solved.result.has_backward_error());
  EXPECT_TRUE(std::isnan(unverified.solved.errors[0]));
  ExpectHeldSoon(before_);
}

TEST_F(RpcBatchSolveTest, ASingularMemberAffectsOnlyItself) {
  std::vector<Member> members = Mixed();
  members[1].values[0] = 0;
  const Encoded batch = Encode(members);
  const Encoded rhs = Encode(Sides(), Systems());
  const BothAnswers answer = Call(HeaderOf(batch, rhs), batch.data, rhs.data, Sides());
  ASSERT_TRUE(answer.status.ok());
  EXPECT_EQ(answer.factor.batch().singular(), 1);
  EXPECT_EQ(answer.solved.result.batch().singular(), 1);
  EXPECT_EQ(answer.solved.info, (std::vector<int32_t>{0, 1, 0}));
  EXPECT_TRUE(std::isnan(answer.solved.x[1][0]));
  EXPECT_LT(answer.solved.errors[2], 1e-14);
}

TEST_F(RpcBatchSolveTest, MembersAreCountedByDeviceAndWork) {
  std::vector<Member> members = Mixed();
  members[1].values[0] = 0;
  const std::string handle = Factor(members).factor.handle();
  ASSERT_TRUE(SolveMembers(handle, {0}, {Random(5, 2, 1)}).status.ok());
  const Encoded batch = Encode(members);
  const Encoded rhs = Encode(Sides(), Systems());
  ASSERT_TRUE(Call(HeaderOf(batch, rhs), batch.data, rhs.data, Sides()).status.ok());
  const std::string metrics = core().metrics.Scrape();
  const auto sample = [&](const std::string& series) { return SampleOf(metrics, series); };
  const std::string factored = "{device=\"cuda:0\",work=\"factor\"}";
  const std::string solved = "{device=\"cuda:0\",work=\"solve\"}";
  EXPECT_EQ(sample("crout_batch_members_count" + factored), 2);
  EXPECT_EQ(sample("crout_batch_members_sum" + factored), 10);
  EXPECT_EQ(sample("crout_batch_members_count" + solved), 2);
  EXPECT_EQ(sample("crout_batch_members_sum" + solved), 4);
  EXPECT_EQ(sample("crout_batch_members_bucket{device=\"cuda:0\",work=\"factor\",le=\"4\"}"), 0);
  EXPECT_EQ(sample("crout_batch_members_bucket{device=\"cuda:0\",work=\"factor\",le=\"16\"}"), 2);
  EXPECT_EQ(sample("crout_batch_singular_members_total{device=\"cuda:0\"}"), 2);
}

TEST_F(RpcBatchSolveTest, AnEmptyBatchIsSolved) {
  const Encoded batch = Encode({});
  const Encoded rhs = Encode({});
  v1::FactorizeAndSolveHeader header = HeaderOf(batch, rhs);
  header.mutable_cache();
  const BothAnswers answer = Call(header, "", "", {});
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  const Downloaded downloaded = Download(answer.factor.handle());
  ASSERT_TRUE(downloaded.status.ok()) << downloaded.status.error_message();
  EXPECT_EQ(downloaded.header.batch().members(), 0);
  EXPECT_EQ(downloaded.data, "");
}

TEST_F(RpcBatchSolveTest, WrongDeclarationsAreRefused) {
  const Encoded batch = Encode(Mixed());
  const Encoded rhs = Encode(Sides(), Systems());
  const auto refused = [&](const std::function<void(v1::FactorizeAndSolveHeader&)>& change,
                           const std::string& data, const std::string& rhs_data,
                           const std::string& text) {
    v1::FactorizeAndSolveHeader header = HeaderOf(batch, rhs);
    change(header);
    ExpectRefused(Call(header, data, rhs_data, {}).status, StatusCode::INVALID_ARGUMENT, text);
    ExpectHeldSoon(before_);
  };
  using Header = v1::FactorizeAndSolveHeader;
  const auto declared = [&](const std::function<void(Header&)>& change, const std::string& text) {
    refused(change, batch.data, rhs.data, text);
  };
  declared([](Header& h) { h.mutable_matrix()->mutable_batch()->set_members(int64_t{1} << 31); },
           "header.matrix.batch.members");
  declared([](Header& h) { h.mutable_matrix()->mutable_batch()->set_total_cols(INT64_MAX); },
           "contradict");
  declared([](Header& h) { h.mutable_rhs()->mutable_batch_rhs()->set_systems(-1); },
           "header.rhs.batch_rhs.systems: right-hand sides for -1 members of a batch of 5");
  declared([](Header& h) { h.mutable_rhs()->mutable_batch_rhs()->set_systems(6); },
           "header.rhs.batch_rhs.systems: right-hand sides for 6 members of a batch of 5");
  const auto value_bytes = [&](int64_t bytes, const std::string& text) {
    declared([bytes](Header& h) { h.mutable_rhs()->mutable_batch_rhs()->set_value_bytes(bytes); },
             text);
  };
  value_bytes(-8, "header.rhs.batch_rhs.value_bytes");
  value_bytes(INT64_MAX - 7, "header.rhs.batch_rhs.value_bytes: ");
  value_bytes(rhs.spec.value_bytes() + 16, "header.rhs");
  declared([](Header& h) { h.mutable_rhs()->clear_format(); }, "header.rhs");
  declared([](Header& h) { *h.mutable_rhs() = Dense(5, 1); },
           "header.rhs: the factor is of a batch");
  declared([](Header& h) { *h.mutable_matrix() = Dense(5, 5); },
           "header.rhs.batch_rhs: right-hand sides of a batch need a batch");
  declared([](Header& h) { h.mutable_solve()->set_error_bound(true); }, "header.solve.error_bound");
  declared([](Header& h) { h.mutable_solve()->set_operation(static_cast<v1::Operation>(7)); },
           "operation");
  declared([](Header& h) { h.mutable_cache()->set_request_id("a"); }, "request_id");
  const auto as_is = [](Header&) {};
  refused(as_is, batch.data.substr(8), rhs.data, "header.matrix");
  refused(as_is, batch.data, rhs.data.substr(16), "header.rhs");
  refused(as_is, batch.data, rhs.data + "12345678", "more bytes");
  refused(as_is, batch.data, Encode(Sides(), {0, 1, 4}).data, "7 x 3");
  refused(as_is, batch.data, Encode(Sides(), {1, 0, 3}).data, "ascending");
}

TEST_F(RpcBatchSolveTest, BatchesThatDoNotFitAreRefusedBeforeTheirBytes) {
  const Encoded batch = Encode(Mixed());
  const Encoded rhs = Encode(Sides(), Systems());
  v1::FactorizeAndSolveHeader header = HeaderOf(batch, rhs);
  header.mutable_rhs()->mutable_batch_rhs()->set_value_bytes(int64_t{1} << 30);
  ExpectRefused(Call(header, "", "", {}).status, StatusCode::RESOURCE_EXHAUSTED, "");
  ExpectHeldSoon(before_);
}

TEST_F(RpcBatchSolveTest, ACancellationBetweenFactorsAndSolutionLeavesNothing) {
  failpoints().Hold("solve.solve");
  grpc::ClientContext context;
  std::thread cancel([&] {
    failpoints().AwaitReached("solve.solve");
    context.TryCancel();
  });
  const Encoded batch = Encode(Mixed());
  const Encoded rhs = Encode(Sides(), Systems());
  v1::FactorizeAndSolveHeader header = HeaderOf(batch, rhs);
  header.mutable_cache();
  EXPECT_EQ(Call(header, batch.data, rhs.data, {}, &context).status.error_code(),
            StatusCode::CANCELLED);
  cancel.join();
  WaitUntil([&] { return CallsRefused(core().metrics.Scrape()) == 1; },
            "the server knows that the call is cancelled");
  failpoints().Release("solve.solve");
  ExpectHeldSoon(before_);
}

// A batch has one handle. Its lease is extended by each use of a member, and is renewed, expires
// and is released like the lease of one matrix. The release frees the memory of all members.
TEST_F(RpcBatchSolveTest, LeasesOfBatchesEqualThoseOfMatrices) {
  const Encoded batch = Encode(Mixed());
  v1::FactorizeHeader header = HeaderOf(batch);
  header.mutable_cache()->mutable_lease()->set_seconds(60);
  const std::vector<Member> rhs = {Random(40, 1, 3)};
  const auto lease = [&](const std::string& handle, int64_t seconds) {
    grpc::ClientContext context;
    v1::RenewLeaseRequest request;
    request.set_handle(handle);
    request.mutable_lease()->set_seconds(seconds);
    v1::RenewLeaseResponse response;
    return stub().RenewLease(&context, request, &response);
  };
  const auto release = [&](const std::string& handle) {
    grpc::ClientContext context;
    v1::ReleaseFactorRequest request;
    request.set_handle(handle);
    v1::ReleaseFactorResponse response;
    return stub().ReleaseFactor(&context, request, &response);
  };
  const auto expect_gone = [&](const std::string& handle) {
    EXPECT_EQ(SolveMembers(handle, {3}, rhs).status.error_code(), StatusCode::NOT_FOUND);
    EXPECT_EQ(Download(handle).status.error_code(), StatusCode::NOT_FOUND);
    EXPECT_EQ(lease(handle, 60).error_code(), StatusCode::NOT_FOUND);
    EXPECT_EQ(release(handle).error_code(), StatusCode::NOT_FOUND);
    ExpectHeldSoon(before_);
  };

  const std::string kept = FactorWith(header, batch.data).factor.handle();
  for (int use = 0; use < 3; ++use) {
    PassTime(absl::Seconds(40));
    ASSERT_TRUE(SolveMembers(kept, {3}, rhs).status.ok()) << use;
    Idle();  // the lease begins when the use ends
  }
  ASSERT_TRUE(lease(kept, 300).ok());
  PassTime(absl::Seconds(200));
  EXPECT_TRUE(SolveMembers(kept, {3}, rhs).status.ok());
  Idle();
  PassTime(absl::Seconds(301));
  expect_gone(kept);

  const std::string released = FactorWith(header, batch.data).factor.handle();
  Idle();
  ASSERT_TRUE(release(released).ok());
  expect_gone(released);
}

TEST_F(RpcBatchSolveTest, MembersAreDownloaded) {
  const std::vector<Member> members = Mixed();
  const std::string handle = Factor(members).factor.handle();
  const Downloaded all = Download(handle);
  ASSERT_TRUE(all.status.ok()) << all.status.error_message();
  EXPECT_EQ(all.header.factor().handle(), handle);
  EXPECT_EQ(all.header.batch().SerializeAsString(), Encode(members).spec.SerializeAsString());
  EXPECT_EQ(Array<int64_t>(all.data, 0, 10),
            (std::vector<int64_t>{5, 5, 1, 1, 0, 0, 40, 40, 7, 3}));
  EXPECT_LT(Ratio(all, members, 0), 30);
  EXPECT_LT(Ratio(all, members, 3), 30);
  // The ratio of another matrix of the same size is large.
  std::vector<Member> others = members;
  others[3] = Random(40, 40, 77);
  EXPECT_GT(Ratio(all, others, 3), 30);

  const Downloaded some = Download(handle, 2, 2);
  ASSERT_TRUE(some.status.ok());
  const std::vector<Member> range = {members[2], members[3]};
  EXPECT_EQ(some.header.batch().SerializeAsString(), Encode(range).spec.SerializeAsString());
  EXPECT_LT(Ratio(some, range, 1), 30);
  EXPECT_EQ(Download(handle, 2).header.batch().members(), 3);
}

TEST_F(RpcBatchSolveTest, ADownloadFromHostMemoryIsEqualAndMovesNothing) {
  const std::string handle = Factor(Mixed()).factor.handle();
  const Downloaded from_device = Download(handle, 1, 3);
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  ASSERT_OK(core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
  const Holdings evicted = Idle();
  const Downloaded from_host = Download(handle, 1, 3);
  ASSERT_TRUE(from_host.status.ok()) << from_host.status.error_message();
  EXPECT_EQ(from_host.data, from_device.data);
  ExpectHeldSoon(evicted);
}

TEST_F(RpcBatchSolveTest, DownloadsOfMissingMembersAreRefused) {
  const std::string handle = Factor(Mixed()).factor.handle();
  const Holdings held = Idle();
  for (const auto& [first, count] : std::vector<std::pair<int64_t, int64_t>>{
           {-1, 1}, {5, 0}, {5, 1}, {4, 2}, {0, 6}, {0, -1}, {1, INT64_MAX}, {INT64_MAX, 1}}) {
    ExpectRefused(Download(handle, first, count).status, StatusCode::INVALID_ARGUMENT,
                  "the batch has 5 members");
  }
  ExpectRefused(Download(handle, 0, 0, "somebody-else").status, StatusCode::NOT_FOUND, "");
  ExpectHeldSoon(held);
  v1::Factor dense;
  ASSERT_TRUE(Factorize(5, &dense).ok());
  ExpectRefused(Download(dense.handle(), 0, 1).status, StatusCode::INVALID_ARGUMENT,
                "count: the handle belongs to a single matrix");
}

TEST_F(RpcBatchSolveTest, ADownloadThatDoesNotFitIsRefused) {
  const std::string handle = Factor({Random(800, 800, 1)}).factor.handle();
  const Holdings held = Idle();
  absl::StatusOr<Reservation> rest = core().engine.cache.ReserveOnHost(
      core().engine.devices.host_budget().limit() - core().engine.devices.host_budget().reserved());
  ASSERT_OK(rest);
  ExpectRefused(Download(handle).status, StatusCode::RESOURCE_EXHAUSTED, "");
  rest->Release();
  ExpectHeldSoon(held);
  EXPECT_TRUE(Download(handle).status.ok());
}

}  // namespace
}  // namespace crout::testing::batch_solve_test
