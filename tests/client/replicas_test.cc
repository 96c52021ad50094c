// SPDX-License-Identifier: Apache-2.0

// Tests that calls on a handle repeat the metadata that names the server of the factor.
#include "client/cpp/replicas.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "crout/status.h"
#include "crout/v1/factorization_service.pb.h"
#include "tests/client/fake_service.h"

namespace crout::client_test::replicas_test {
namespace {

using internal::HandleIn;
using internal::Replicas;
using ::testing::ElementsAre;

constexpr char kMetadata[] = "crout-replica";

class ReplicasTest : public ::testing::Test {
 protected:
  // The metadata and the status of a reply.
  struct Answer {
    std::string replica;
    grpc::Status status;
  };

  ReplicasTest() {
    using Factorize = FakeService::Stream<v1::FactorizeResponse, v1::FactorizeRequest>;
    server_.service.factorize = [this](grpc::ServerContext* context, Factorize* stream) {
      v1::FactorizeRequest request;
      while (stream->Read(&request)) {
      }
      v1::FactorizeResponse response;
      response.mutable_factor()->set_handle("h");
      stream->Write(response);
      return Next(context);
    };
    server_.service.describe = [this](grpc::ServerContext* context, auto&, auto*) {
      return Next(context);
    };
    server_.service.release = [this](grpc::ServerContext* context, auto&, auto*) {
      return Next(context);
    };
  }

  grpc::Status Next(grpc::ServerContext* context) {
    const auto found = context->client_metadata().find(kMetadata);
    received_.push_back(found == context->client_metadata().end()
                            ? ""
                            : std::string(found->second.data(), found->second.size()));
    const Answer& answer = answers_.at(received_.size() - 1);
    if (!answer.replica.empty()) context->AddTrailingMetadata(kMetadata, answer.replica);
    return answer.status;
  }
  absl::Status Factorize() {
    return client_->Factor(MatrixSource::Dense(absl::MakeConstSpan(a_), 1, 1), {}).status();
  }

  const grpc::Status other_ = ServerStatus(grpc::StatusCode::UNAVAILABLE, "OTHER_REPLICA");
  const std::vector<double> a_{1.0};
  std::vector<Answer> answers_;
  std::vector<std::string> received_;  // one call at a time
  FakeServer server_;
  // A second delay would let the test time out.
  std::unique_ptr<Client> client_ = server_.NewClient(
      {.retry = {.initial_backoff = absl::Hours(1), .max_backoff = absl::Hours(1)}});
};

TEST_F(ReplicasTest, CallsOnAHandleRepeatTheMetadataOfItsReplies) {
  answers_ = {{"a.f", grpc::Status::OK}, {"a.f", grpc::Status::OK}, {"", grpc::Status::OK}};
  ASSERT_TRUE(Factorize().ok());
  EXPECT_TRUE(client_->Describe("h").ok());
  EXPECT_TRUE(client_->Describe("other").ok());
  EXPECT_THAT(received_, ElementsAre("", "a.f", ""));
}

TEST_F(ReplicasTest, ARefusedCallIsRepeatedAtTheOwnerAtOnce) {
  answers_ = {{"a.f", grpc::Status::OK},
              {"b.f", other_},
              {"b.f", grpc::Status::OK},
              {"b.f", grpc::Status::OK}};
  ASSERT_TRUE(Factorize().ok());
  EXPECT_TRUE(client_->Describe("h").ok());
  EXPECT_TRUE(client_->Describe("h").ok());
  EXPECT_THAT(received_, ElementsAre("", "a.f", "b.f", "b.f"));
}

TEST_F(ReplicasTest, ACallWithEffectsIsRepeatedToo) {
  answers_ = {{"b.f", other_}, {"", grpc::Status::OK}};
  EXPECT_TRUE(client_->Release("h").ok());
  EXPECT_THAT(received_, ElementsAre("", "b.f"));
}

TEST_F(ReplicasTest, OnlyOneRepetitionHasNoDelay) {
  answers_ = {{"b.f", other_}, {"a.f", other_}};
  CallOptions call;
  call.timeout = absl::Minutes(1);
  EXPECT_EQ(Reason(client_->Describe("h", call).status()), "OTHER_REPLICA");
  EXPECT_THAT(received_, ElementsAre("", "b.f"));
}

TEST_F(ReplicasTest, AClientWithoutRetriesDoesNotRepeat) {
  client_ = server_.NewClient({.retry = {.max_attempts = 1}});
  answers_ = {{"b.f", other_}, {"b.f", grpc::Status::OK}};
  EXPECT_EQ(Reason(client_->Describe("h").status()), "OTHER_REPLICA");
  EXPECT_TRUE(client_->Describe("h").ok());
  EXPECT_THAT(received_, ElementsAre("", "b.f"));
}

TEST(HandleInTest, FindsTheHandleOfARequest) {
  v1::DescribeFactorRequest describe;
  describe.set_handle("h");
  EXPECT_EQ(HandleIn(describe), "h");
  v1::SolveRequest solve;
  EXPECT_EQ(HandleIn(solve), "");
  solve.mutable_header()->set_handle("h");
  EXPECT_EQ(HandleIn(solve), "h");
  EXPECT_EQ(HandleIn(v1::FactorizeRequest()), "");
  EXPECT_EQ(HandleIn(v1::GetServerInfoRequest()), "");
}

TEST(ReplicaValuesTest, StoresTheLastHandles) {
  Replicas replicas;
  replicas.Set("h", "");
  replicas.Set("", "a.f");
  replicas.Set("long", std::string(1000, 'a'));
  EXPECT_EQ(replicas.Find("h"), "");
  EXPECT_EQ(replicas.Find(""), "");
  EXPECT_EQ(replicas.Find("long"), "");
  const size_t all = 3 * Replicas::kHandles;
  for (size_t i = 0; i < all; ++i) replicas.Set(absl::StrCat(i), absl::StrCat("a.", i));
  EXPECT_EQ(replicas.Find("0"), "");
  for (size_t i = all - Replicas::kHandles; i < all; ++i) {
    ASSERT_EQ(replicas.Find(absl::StrCat(i)), absl::StrCat("a.", i));
  }
  replicas.Set(absl::StrCat(all - 1), "b.f");
  EXPECT_EQ(replicas.Find(absl::StrCat(all - 1)), "b.f");
}

}  // namespace
}  // namespace crout::client_test::replicas_test
