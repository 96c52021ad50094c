// SPDX-License-Identifier: Apache-2.0

// Tests calls for batches: payloads, and replies that are split, incomplete or of another batch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/client/fake_service.h"

namespace crout::client_test::batch_test {
namespace {

using ::testing::ElementsAre;

template <class T>
std::string BytesOf(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// Reads a whole request. Each payload is appended to its string.
template <class Request, class Stream>
Request ReadAll(Stream* stream, std::string* data, std::string* rhs_data) {
  Request header, next;
  while (stream->Read(&next)) {
    if (next.has_header()) header = next;
    data->append(next.data());
    if constexpr (requires { next.rhs_data(); }) rhs_data->append(next.rhs_data());
  }
  return header;
}

// Sends `bytes` in messages of 5 bytes, with `set`, which sets a field of Response.
template <class Response, class Stream, class Set>
void SendPieces(Stream* stream, const std::string& bytes, Set set) {
  for (size_t at = 0; at < bytes.size(); at += 5) {
    Response response;
    set(&response, bytes.substr(at, 5));
    stream->Write(response);
  }
}

class BatchTest : public ::testing::Test {
 protected:
  BatchTest() {
    server_.service.factorize = [this](grpc::ServerContext*, auto* stream) {
      const auto first = ReadAll<v1::FactorizeRequest>(stream, &data_, nullptr);
      spec_ = first.header().matrix();
      SendPieces<v1::FactorizeResponse>(
          stream, figures_, [](auto* response, auto piece) { response->set_member_data(piece); });
      v1::FactorizeResponse last;
      last.mutable_factor()->mutable_batch()->set_members(members_);
      stream->Write(last);
      return grpc::Status::OK;
    };
    server_.service.solve = [this](grpc::ServerContext*, auto* stream) {
      const auto first = ReadAll<v1::SolveRequest>(stream, &data_, nullptr);
      spec_ = first.header().rhs();
      SendSolution<v1::SolveResponse>(stream);
      return grpc::Status::OK;
    };
    server_.service.factorize_and_solve = [this](grpc::ServerContext*, auto* stream) {
      ReadAll<v1::FactorizeAndSolveRequest>(stream, &data_, &rhs_data_);
      SendPieces<v1::FactorizeAndSolveResponse>(
          stream, figures_, [](auto* response, auto piece) { response->set_member_data(piece); });
      v1::FactorizeAndSolveResponse made;
      made.mutable_factor()->mutable_batch()->set_members(members_);
      stream->Write(made);
      SendSolution<v1::FactorizeAndSolveResponse>(stream);
      return grpc::Status::OK;
    };
    matrices_.Add(values_.data(), 1, 1);
    matrices_.Add(values_.data(), 2, 2);
    sides_.AddFor(1, values_.data() + 1, 2, 1);
    sides_.AddFor(0, values_.data(), 1, 1);
  }

  absl::StatusOr<FactorDescription> Factor() {
    return client_->Factor(MatrixSource::Batch(matrices_));
  }
  absl::StatusOr<SolveResult> Solve() {
    return client_->Solve("h", MatrixSource::BatchRhs(sides_), {}, &x_);
  }
  absl::StatusOr<SolveResult> FactorAndSolve(FactorDescription* factor) {
    return client_->FactorAndSolve(MatrixSource::Batch(matrices_), MatrixSource::BatchRhs(sides_),
                                   {}, factor, &x_);
  }

  template <class Response, class Stream>
  void SendSolution(Stream* stream) {
    if (with_header_) {
      Response header;
      header.mutable_header()->mutable_solution()->set_dtype(v1::DTYPE_FLOAT64);
      stream->Write(header);
    }
    SendPieces<Response>(stream, solution_,
                         [](auto* response, auto piece) { response->set_data(piece); });
    Response last;
    last.mutable_result()->mutable_batch()->set_singular(1);
    stream->Write(last);
  }

  const std::vector<double> values_ = {1, 2, 3, 4};
  BatchSource matrices_, sides_;
  BatchMatrices x_;
  // Replies: members 0 and 1, each with a system.
  int64_t members_ = 2;
  std::string figures_ = BytesOf<double>({1, 5, 2, 7}) + BytesOf<int32_t>({0, 2});
  std::string solution_ = BytesOf<double>({1, 0, 2, 3, 0.25, 0.5}) + BytesOf<int32_t>({0, 2});
  bool with_header_ = false;
  // Requests.
  v1::MatrixSpec spec_;
  std::string data_, rhs_data_;
  FakeServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
};

TEST_F(BatchTest, FactorSendsSizesAndValuesAndReadsFigures) {
  const auto made = Factor();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(spec_.batch().members(), 2);
  EXPECT_EQ(spec_.batch().total_rows(), 3);
  EXPECT_EQ(spec_.batch().value_bytes(), 48);
  EXPECT_EQ(data_, BytesOf<int64_t>({1, 1, 2, 2}) + BytesOf<double>({1, 0, 1, 2, 3, 4}));
  EXPECT_THAT(made->members.pivot_growth, ElementsAre(1, 5));
  EXPECT_THAT(made->members.quality, ElementsAre(2, 7));
  EXPECT_THAT(made->members.info, ElementsAre(0, 2));
}

TEST_F(BatchTest, SolveSendsMembersInOrderAndReturnsTheCallersOrder) {
  const auto solved = Solve();
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(spec_.batch_rhs().systems(), 2);
  EXPECT_EQ(spec_.batch_rhs().value_bytes(), 32);
  EXPECT_EQ(data_, BytesOf<int64_t>({0, 1, 1, 1}) + BytesOf<double>({1, 0, 2, 3}));
  EXPECT_THAT(x_.values<double>(0), ElementsAre(2, 3));
  EXPECT_THAT(x_.values<double>(1), ElementsAre(1));
  EXPECT_THAT(solved->systems.backward_error, ElementsAre(0.5, 0.25));
  EXPECT_THAT(solved->systems.info, ElementsAre(2, 0));
  ASSERT_TRUE(solved->batch.has_value());
  EXPECT_EQ(solved->batch->singular, 1);
}

TEST_F(BatchTest, ASinkOfOneMatrixIsRefusedBeforeTheCall) {
  std::vector<double> x(3);
  SpanSink sink(absl::MakeSpan(x));
  const auto solved = client_->Solve("h", MatrixSource::BatchRhs(sides_), {}, &sink);
  EXPECT_EQ(solved.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(data_, "");
}

TEST_F(BatchTest, FactorAndSolveReadsBoth) {
  FactorDescription factor;
  const auto solved = FactorAndSolve(&factor);
  ASSERT_TRUE(solved.ok()) << solved.status();
  EXPECT_EQ(data_.size(), 80u);
  EXPECT_EQ(rhs_data_.size(), 64u);
  EXPECT_THAT(factor.members.quality, ElementsAre(2, 7));
  EXPECT_THAT(x_.values<double>(1), ElementsAre(1));
}

TEST_F(BatchTest, InconsistentRepliesAreDetected) {
  const auto codes = [this] {
    FactorDescription factor;
    return std::vector<absl::StatusCode>{Factor().status().code(), Solve().status().code(),
                                         FactorAndSolve(&factor).status().code()};
  };
  constexpr auto kOk = absl::StatusCode::kOk, kInternal = absl::StatusCode::kInternal;
  EXPECT_THAT(codes(), ElementsAre(kOk, kOk, kOk));
  members_ = 3;
  EXPECT_THAT(codes(), ElementsAre(kInternal, kOk, kInternal));
  members_ = 2;
  figures_.pop_back();
  EXPECT_THAT(codes(), ElementsAre(kInternal, kOk, kInternal));
  figures_.append(2, '\0');
  EXPECT_THAT(codes(), ElementsAre(kInternal, kOk, kInternal));
  figures_.pop_back();
  solution_.pop_back();
  EXPECT_THAT(codes(), ElementsAre(kOk, kInternal, kInternal));
  solution_.append(2, '\0');
  EXPECT_THAT(codes(), ElementsAre(kOk, kInternal, kInternal));
  solution_.pop_back();
  with_header_ = true;
  EXPECT_THAT(codes(), ElementsAre(kOk, kInternal, kInternal));
}

}  // namespace
}  // namespace crout::client_test::batch_test
