// SPDX-License-Identifier: Apache-2.0

// Tests crout::Factor: while the object exists, it renews the lease and reports failures; its
// destructor releases the factor.
#include "crout/factor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <optional>
#include <utility>
#include <vector>

#include "tests/client/fake_service.h"
#include "tests/support/timing/eventually.h"
#include "tests/support/timing/gate.h"

namespace crout::factor_test {
namespace {

using client_test::FakeServer;
using client_test::FakeService;
using client_test::ServerStatus;
using crout::testing::Eventually;
using grpc::StatusCode;

const grpc::Status kGone = ServerStatus(StatusCode::NOT_FOUND, "FACTOR_NOT_FOUND");
const grpc::Status kLost{StatusCode::UNAVAILABLE, "lost"};

class FactorTest : public ::testing::Test {
 protected:
  FactorTest() {
    ClientOptions options;
    options.retry.max_attempts = 1;
    client_ = server_.NewClient(options);
    using FactorizeStream = FakeService::Stream<v1::FactorizeResponse, v1::FactorizeRequest>;
    using SolveStream = FakeService::Stream<v1::SolveResponse, v1::SolveRequest>;
    server_.service.factorize = [this](auto*, FactorizeStream* stream) {
      return Factorize(stream);
    };
    server_.service.solve = [this](auto*, SolveStream* stream) { return Solve(stream); };
    server_.service.renew = [this](auto*, const v1::RenewLeaseRequest& request, auto*) {
      last_renewed_ms_ = request.lease().nanos() / 1'000'000 + request.lease().seconds() * 1000;
      ++renewals_;
      return failing_ == nullptr ? grpc::Status::OK : *failing_;
    };
    server_.service.release = [this](auto*, const v1::ReleaseFactorRequest& request, auto*) {
      if (request.handle() == "handle") ++releases_;
      return grpc::Status::OK;
    };
  }

  template <class Stream>
  grpc::Status Factorize(Stream* stream) {
    v1::FactorizeRequest request;
    while (stream->Read(&request)) {
    }
    v1::FactorizeResponse response;
    v1::Factor* factor = response.mutable_factor();
    factor->set_handle("handle");
    // The clock of this server is many years slow.
    factor->mutable_create_time()->set_seconds(1'000'000);
    factor->mutable_lease_expire_time()->set_seconds(1'000'000 + lease_ms_ / 1000);
    factor->mutable_lease_expire_time()->set_nanos(lease_ms_ % 1000 * 1'000'000);
    stream->Write(response);
    return grpc::Status::OK;
  }

  template <class Stream>
  grpc::Status Solve(Stream* stream) {
    v1::SolveRequest request;
    while (stream->Read(&request)) {
    }
    solves_gate_.Pass();
    ++solves_;
    v1::SolveResponse response;
    v1::DenseSpec* solution = response.mutable_header()->mutable_solution();
    solution->set_dtype(v1::DTYPE_FLOAT64);
    solution->set_rows(1);
    solution->set_cols(1);
    response.set_data(std::string(sizeof(double), '\0'));
    response.mutable_result();
    stream->Write(response);
    return grpc::Status::OK;
  }

  absl::StatusOr<Factor> NewFactor(const CacheOptions& cache = {}) {
    return Factor::Make(client_, one_, {}, cache);
  }

  absl::Status SolveWith(const Factor& factor) {
    BufferSink x;
    return factor.Solve(one_, {}, &x).status();
  }

  const std::vector<double> value_{1.0};
  const MatrixSource one_ = MatrixSource::Dense(absl::MakeConstSpan(value_), 1, 1);
  std::atomic<int64_t> lease_ms_ = 3'600'000;
  std::atomic<const grpc::Status*> failing_ = nullptr;  // reply to a renewal; null: OK
  std::atomic<int> renewals_ = 0;
  std::atomic<int64_t> last_renewed_ms_ = 0;
  std::atomic<int> releases_ = 0;
  std::atomic<int> solves_ = 0;
  crout::testing::Gate solves_gate_;
  FakeServer server_;
  std::shared_ptr<Client> client_;
};

TEST_F(FactorTest, IsRenewedByItsOwnLengthAndReleasedOnce) {
  lease_ms_ = 60;
  {
    auto factor = NewFactor();
    ASSERT_TRUE(factor.ok()) << factor.status();
    EXPECT_EQ(factor->handle(), "handle");
    Factor moved = *std::move(factor);
    EXPECT_TRUE(Eventually([&] { return renewals_ >= 3; }));
    EXPECT_EQ(last_renewed_ms_, 60);
    EXPECT_TRUE(moved.lease_status().ok());
    EXPECT_EQ(releases_, 0);
  }
  EXPECT_EQ(releases_, 1);
}

TEST_F(FactorTest, RenewsWithTheRequestedLease) {
  CacheOptions cache;
  cache.lease = absl::Milliseconds(80);
  auto factor = NewFactor(cache);
  ASSERT_TRUE(factor.ok());
  EXPECT_TRUE(Eventually([&] { return renewals_ >= 1; }));
  EXPECT_EQ(last_renewed_ms_, 80);
}

TEST_F(FactorTest, ARequestIdNeedsALeaseAndIsRenewedAtOnce) {
  CacheOptions cache;
  cache.request_id = "id";
  EXPECT_EQ(NewFactor(cache).status().code(), absl::StatusCode::kInvalidArgument);
  cache.lease = absl::Hours(1);
  EXPECT_TRUE(NewFactor(cache).ok());
  EXPECT_EQ(renewals_, 1);
}

TEST_F(FactorTest, AFactorThatIsGoneIsSeenByTheNextUse) {
  lease_ms_ = 60;
  failing_ = &kGone;
  auto factor = NewFactor();
  ASSERT_TRUE(factor.ok());
  EXPECT_TRUE(Eventually([&] { return absl::IsNotFound(factor->lease_status()); }));
  const absl::Status status = SolveWith(*factor);
  EXPECT_EQ(Reason(status), "FACTOR_NOT_FOUND");
  EXPECT_THAT(status.message(), ::testing::HasSubstr("lease was not renewed"));
  EXPECT_EQ(solves_, 0);
  EXPECT_TRUE(absl::IsNotFound(factor->Describe().status()));
  EXPECT_TRUE(absl::IsNotFound(factor->Refactor(one_)));
  EXPECT_EQ(renewals_, 1);  // the error is final, so the renewal is not repeated
}

TEST_F(FactorTest, AfterAFailedRenewalAUseRenewsFirst) {
  lease_ms_ = 60'000;
  failing_ = &kLost;
  auto factor = NewFactor();
  ASSERT_TRUE(factor.ok());
  // There was no renewal in the background, because the next is due only in half a minute.
  ASSERT_EQ(renewals_, 0);
  EXPECT_TRUE(SolveWith(*factor).ok());
  lease_ms_ = 60;
  auto short_lived = NewFactor();
  ASSERT_TRUE(short_lived.ok());
  EXPECT_TRUE(Eventually([&] { return absl::IsUnavailable(short_lived->lease_status()); }));
  solves_ = 0;
  EXPECT_TRUE(absl::IsUnavailable(SolveWith(*short_lived)));
  EXPECT_EQ(solves_, 0);
  failing_ = nullptr;
  EXPECT_TRUE(SolveWith(*short_lived).ok());
  EXPECT_EQ(solves_, 1);
  EXPECT_TRUE(short_lived->lease_status().ok());
}

TEST_F(FactorTest, AFailedRenewalIsTriedAgainInTheBackground) {
  lease_ms_ = 60;
  failing_ = &kLost;
  auto factor = NewFactor();
  ASSERT_TRUE(factor.ok());
  EXPECT_TRUE(Eventually([&] { return renewals_ >= 3; }));
  failing_ = nullptr;
  EXPECT_TRUE(Eventually([&] { return factor->lease_status().ok(); }));
}

TEST_F(FactorTest, SolvesInTheBackgroundRunSideBySide) {
  auto factor = NewFactor();
  ASSERT_TRUE(factor.ok());
  solves_gate_.Close();
  BufferSink x0, x1;
  auto first = factor->SolveAsync(one_, {}, &x0);
  auto second = factor->SolveAsync(one_, {}, &x1);
  const Factor moved = *std::move(factor);
  solves_gate_.WaitUntilHeld(2);
  solves_gate_.Open();
  EXPECT_TRUE(first.get().ok());
  EXPECT_TRUE(second.get().ok());
  EXPECT_EQ(x1.spec().rows, 1);
}

TEST_F(FactorTest, ASolveWithoutASinkIsRefusedBeforeItIsSent) {
  auto factor = NewFactor();
  ASSERT_TRUE(factor.ok());
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(factor->Solve(one_, {}, nullptr).status().code(), refused);
  EXPECT_EQ(factor->SolveAsync(one_, {}, nullptr).get().status().code(), refused);
  EXPECT_EQ(solves_, 0);
}

TEST_F(FactorTest, ATextThatIsNotUtf8IsRefusedByItsName) {
  CacheOptions cache;
  cache.name = "\xff";
  EXPECT_EQ(NewFactor(cache).status(),
            absl::InvalidArgumentError("the name is not valid UTF-8: encode it as UTF-8"));
  EXPECT_EQ(client_->Describe("\xff").status(),
            absl::InvalidArgumentError("the handle is not valid UTF-8: encode it as UTF-8"));
  cache.name = "\u00e9\u20ac\U0001d11e";
  EXPECT_TRUE(NewFactor(cache).ok());
}

TEST_F(FactorTest, NothingWorksAfterRelease) {
  auto factor = NewFactor();
  ASSERT_TRUE(factor.ok());
  EXPECT_TRUE(factor->Release().ok());
  EXPECT_EQ(factor->handle(), "");
  const auto refused = absl::StatusCode::kFailedPrecondition;
  EXPECT_EQ(factor->Release().code(), refused);
  EXPECT_EQ(SolveWith(*factor).code(), refused);
  BufferSink x;
  EXPECT_EQ(factor->SolveAsync(one_, {}, &x).get().status().code(), refused);
  EXPECT_EQ(factor->Refactor(one_).code(), refused);
  EXPECT_EQ(releases_, 1);
}

TEST_F(FactorTest, AnAssignedFactorReleasesWhatItHeld) {
  auto first = NewFactor();
  auto second = NewFactor();
  ASSERT_TRUE(first.ok() && second.ok());
  *first = *std::move(second);
  EXPECT_EQ(releases_, 1);
  EXPECT_EQ(first->handle(), "handle");
  EXPECT_TRUE(SolveWith(*first).ok());
}

}  // namespace
}  // namespace crout::factor_test
