// SPDX-License-Identifier: Apache-2.0

// Tests which calls the client retries, as observed by the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <vector>

#include "absl/time/clock.h"
#include "client/cpp/grpc_status.h"
#include "client/cpp/retry.h"
#include "tests/client/fake_service.h"

namespace crout::client_test::retry_test {
namespace {

using internal::DelayBeforeRetry;
using internal::RetryClass;
using internal::ToAbslStatus;

class RetryCallsTest : public ::testing::Test {
 protected:
  RetryCallsTest() {
    using Factorize = FakeService::Stream<v1::FactorizeResponse, v1::FactorizeRequest>;
    using Refactorize = FakeService::Stream<v1::RefactorizeResponse, v1::RefactorizeRequest>;
    server_.service.factorize = [this](auto*, Factorize* stream) { return Answer(stream); };
    server_.service.refactorize = [this](auto*, Refactorize* stream) { return Answer(stream); };
    server_.service.describe = [this](auto*, auto&, auto*) { return Next(); };
  }

  grpc::Status Next() {
    const size_t call = calls_++;
    return call < refusals_.size() ? refusals_[call] : grpc::Status::OK;
  }

  template <class Response, class Request>
  grpc::Status Answer(grpc::ServerReaderWriter<Response, Request>* stream) {
    Request request;
    while (stream->Read(&request)) {
    }
    const grpc::Status status = Next();
    Response response;
    response.mutable_factor()->set_handle("h");
    if (status.ok()) stream->Write(response);
    return status;
  }

  absl::Status Factorize(const std::string& request_id = "") {
    CacheOptions cache;
    cache.request_id = request_id;
    return client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a_), 1, 1), {}, cache).status();
  }

  absl::Status Refactorize() {
    return client_->Refactor("h", MatrixSource::Dense(absl::MakeConstSpan(a_), 1, 1), {}).status();
  }

  const grpc::Status full_ =
      ServerStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", absl::Milliseconds(20));
  const grpc::Status lost_{grpc::StatusCode::UNAVAILABLE, "lost"};
  const std::vector<double> a_{1.0};
  std::vector<grpc::Status> refusals_;
  std::atomic<size_t> calls_ = 0;
  FakeServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient(
      {.retry = {.initial_backoff = absl::Milliseconds(1), .max_backoff = absl::Milliseconds(2)}});
};

TEST_F(RetryCallsTest, FullQueueIsTriedAgainAfterTheServersDelay) {
  refusals_ = {full_, full_};
  const auto begin = absl::Now();
  EXPECT_TRUE(Factorize().ok());
  EXPECT_EQ(calls_, 3u);
  EXPECT_GE(absl::Now() - begin, absl::Milliseconds(40));
  calls_ = 0;
  EXPECT_TRUE(Refactorize().ok());
  EXPECT_EQ(calls_, 3u);
}

TEST_F(RetryCallsTest, AttemptsAreLimited) {
  refusals_.assign(10, full_);
  EXPECT_EQ(Reason(Factorize()), "QUEUE_FULL");
  EXPECT_EQ(calls_, 4u);
}

TEST_F(RetryCallsTest, LostConnectionIsRetriedOnlyWhereItIsSafe) {
  refusals_ = {lost_};
  EXPECT_EQ(Factorize().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls_, 1u);
  calls_ = 0;
  EXPECT_EQ(Refactorize().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls_, 1u);
  calls_ = 0;
  EXPECT_TRUE(Factorize("id").ok());
  EXPECT_EQ(calls_, 2u);
  calls_ = 0;
  EXPECT_TRUE(client_->Describe("h").ok());
  EXPECT_EQ(calls_, 2u);
}

TEST_F(RetryCallsTest, ACallWaitsForTheRestartOfAServerThatHasAnswered) {
  refusals_.assign(10, lost_);
  EXPECT_EQ(client_->Describe("h").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls_, 4u) << "the address may be wrong";
  calls_ = 10;
  ASSERT_TRUE(client_->Describe("h").ok());
  calls_ = 0;
  EXPECT_TRUE(client_->Describe("h").ok());
  EXPECT_EQ(calls_, 11u);
  calls_ = 0;
  EXPECT_EQ(Refactorize().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls_, 1u) << "a repetition is not safe";
}

TEST_F(RetryCallsTest, TheTimeForARestartIsLimited) {
  client_ = server_.NewClient(
      {.retry = {.initial_backoff = absl::Milliseconds(1), .restart = absl::ZeroDuration()}});
  ASSERT_TRUE(client_->Describe("h").ok());
  refusals_.assign(10, lost_);
  calls_ = 0;
  EXPECT_EQ(client_->Describe("h").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(calls_, 4u);
}

TEST_F(RetryCallsTest, OnlyAStatusOfTheServerShowsThatAServerWasReached) {
  const auto is_reached_by = [](const absl::Status& status) {
    std::atomic<bool> reached = false;
    internal::RunWithRetries({}, RetryClass::kNever, absl::InfiniteFuture(),
                             /*cancellation=*/nullptr, &reached, [&] { return status; })
        .IgnoreError();
    return reached.load();
  };
  EXPECT_TRUE(is_reached_by(absl::OkStatus()));
  EXPECT_TRUE(is_reached_by(ToAbslStatus(
      ServerStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", absl::Seconds(1)))));
  EXPECT_FALSE(is_reached_by(absl::DeadlineExceededError("no connection before the deadline")));
  EXPECT_FALSE(is_reached_by(absl::InvalidArgumentError("the file has no matrix")));
  EXPECT_FALSE(is_reached_by(absl::UnavailableError("connection refused")));
}

TEST_F(RetryCallsTest, TheServersDelayIsCapped) {
  const RetryPolicy policy{.max_server_delay = absl::Milliseconds(100)};
  for (const absl::Duration server_delay :
       {absl::Hours(5), absl::Milliseconds(100), absl::Seconds(-7)}) {
    const absl::Status refused = ToAbslStatus(
        ServerStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", server_delay));
    const auto delay = DelayBeforeRetry(policy, RetryClass::kRefusedOnly, 1, refused);
    ASSERT_TRUE(delay.has_value());
    EXPECT_GE(*delay, std::clamp(server_delay, absl::ZeroDuration(), policy.max_server_delay));
    EXPECT_LE(*delay, 1.2 * policy.max_server_delay);
  }
}

TEST_F(RetryCallsTest, CallsHaveADeadlineUnlessTheyAreToHaveNone) {
  std::chrono::system_clock::time_point seen;
  server_.service.describe = [&](grpc::ServerContext* context, auto&, auto*) {
    seen = context->deadline();
    return grpc::Status::OK;
  };
  constexpr auto kNone = std::chrono::system_clock::time_point::max();
  EXPECT_TRUE(client_->Describe("h").ok());
  // gRPC rounds timeouts of hours by up to 10 s.
  EXPECT_LT(absl::FromChrono(seen), absl::Now() + ClientOptions().timeout + absl::Minutes(1));
  EXPECT_GT(absl::FromChrono(seen), absl::Now() + ClientOptions().timeout - absl::Minutes(1));
  for (const absl::Duration none : {absl::ZeroDuration(), absl::InfiniteDuration()}) {
    CallOptions call;
    call.timeout = none;
    EXPECT_TRUE(client_->Describe("h", call).ok());
    EXPECT_EQ(seen, kNone);
    EXPECT_TRUE(server_.NewClient({.timeout = none})->Describe("h").ok());
    EXPECT_EQ(seen, kNone);
  }
  EXPECT_EQ(Client::Connect({.timeout = absl::Seconds(-1)}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RetryCallsTest, ACallThatBeginsAfterItsDeadlineIsNotSent) {
  CallOptions call;
  call.timeout = absl::Nanoseconds(1);
  EXPECT_EQ(client_->Describe("h", call).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(calls_, 0u);
}

TEST_F(RetryCallsTest, DelayBeyondTheDeadlineIsNotWaitedFor) {
  refusals_ = {ServerStatus(grpc::StatusCode::RESOURCE_EXHAUSTED, "QUEUE_FULL", absl::Hours(2))};
  CallOptions call;
  call.timeout = absl::Hours(1);
  const auto patient = server_.NewClient({.retry = {.max_server_delay = absl::Hours(3)}});
  // The call must return without waiting for the retry delay.
  EXPECT_EQ(patient->Describe("h", call).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(RetryCallsTest, AServerThatDoesNotListenIsUnreachable) {
  const auto client =
      *Client::Connect({.server = "127.0.0.1:1",
                        .retry = {.max_attempts = 2, .initial_backoff = absl::Milliseconds(1)}});
  EXPECT_TRUE(IsUnreachable(client->Describe("h").status()));
}

TEST_F(RetryCallsTest, ListFollowsThePages) {
  server_.service.list = [](auto*, const v1::ListFactorsRequest& request,
                            v1::ListFactorsResponse* response) {
    const int page = request.page_token().empty() ? 0 : std::stoi(request.page_token());
    response->add_factors()->set_n(page);
    if (page < 2) response->set_next_page_token(std::to_string(page + 1));
    return grpc::Status::OK;
  };
  std::vector<int64_t> seen;
  const auto collect = [&](const FactorDescription& factor) {
    seen.push_back(factor.n);
    return true;
  };
  ASSERT_TRUE(client_->List("", collect).ok());
  EXPECT_THAT(seen, ::testing::ElementsAre(0, 1, 2));
}

}  // namespace
}  // namespace crout::client_test::retry_test
