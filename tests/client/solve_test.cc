// SPDX-License-Identifier: Apache-2.0

// Tests downloads: solutions are written to the caller's memory, and inconsistent replies are
// detected.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <utility>
#include <vector>

#include "tests/client/fake_service.h"

namespace crout::client_test::solve_test {
namespace {

using SolveStream = FakeService::Stream<v1::SolveResponse, v1::SolveRequest>;
using BothStream = FakeService::Stream<v1::FactorizeAndSolveResponse, v1::FactorizeAndSolveRequest>;

// Replies with a header of `rows` x `cols`, and then with B itself in messages of `chunk` bytes.
grpc::Status Echo(SolveStream* stream, int64_t rows, int64_t cols, size_t chunk) {
  std::string data;
  v1::SolveRequest request;
  v1::SolveResponse response;
  auto* solution = response.mutable_header()->mutable_solution();
  while (stream->Read(&request)) {
    data += request.data();
    if (request.has_header()) solution->set_dtype(request.header().rhs().dense().dtype());
  }
  solution->set_rows(rows);
  solution->set_cols(cols);
  for (size_t at = 0; at < data.size(); at += chunk) {
    response.set_data(data.substr(at, chunk));
    stream->Write(response);
    response.Clear();
  }
  response.mutable_result()->set_nrhs(cols);
  stream->Write(response);
  return grpc::Status::OK;
}

class SolveTest : public ::testing::Test {
 protected:
  // Solves for a 100 x 3 right-hand side. The reply declares `rows` x 3.
  absl::Status Solve(int64_t rows, MatrixSink* x, size_t chunk = 1000) {
    server_.service.solve = [=](grpc::ServerContext*, SolveStream* stream) {
      return Echo(stream, rows, 3, chunk);
    };
    return client_->Solve("h", MatrixSource::Dense(absl::MakeConstSpan(b_), 100, 3), {}, x)
        .status();
  }

  FakeServer server_;
  std::unique_ptr<Client> client_ = server_.NewClient();
  const std::vector<double> b_ = [] {
    std::vector<double> b(300);
    for (size_t i = 0; i < b.size(); ++i) b[i] = 1.0 / (1.0 + static_cast<double>(i));
    return b;
  }();
};

template <class T>
void ExpectEchoed(Client* client) {
  std::vector<std::complex<T>> b(30);
  for (size_t i = 0; i < b.size(); ++i) b[i] = {static_cast<T>(i), T{1} / static_cast<T>(i + 1)};
  std::vector<std::complex<T>> x(b.size());
  SpanSink sink(absl::MakeSpan(x));
  const auto source = MatrixSource::Dense(absl::MakeConstSpan(b), 10, 3);
  const absl::Status status = client->Solve("h", source, {}, &sink).status();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(x, b);
}

TEST_F(SolveTest, ComplexSpansGoThereAndBack) {
  server_.service.solve = [](grpc::ServerContext*, SolveStream* stream) {
    return Echo(stream, 10, 3, 7);
  };
  ExpectEchoed<double>(client_.get());
  ExpectEchoed<float>(client_.get());
  std::vector<double> parts(60);
  SpanSink real(absl::MakeSpan(parts));
  const auto ones = MatrixSource::Ones(10, 3, Dtype::kComplex128);
  EXPECT_EQ(client_->Solve("h", ones, {}, &real).status().code(),
            absl::StatusCode::kInvalidArgument);
  std::vector<std::complex<double>> x(30);
  SpanSink sink(absl::MakeSpan(x));
  EXPECT_TRUE(client_->Solve("h", ones, {}, &sink).ok());
  EXPECT_EQ(x, std::vector<std::complex<double>>(30, 1.0));
}

TEST_F(SolveTest, SolutionLandsInTheCallersSpan) {
  for (const size_t chunk : {7, 1000, 100000}) {
    std::vector<double> x(300);
    SpanSink sink(absl::MakeSpan(x));
    ASSERT_TRUE(Solve(100, &sink, chunk).ok());
    EXPECT_EQ(x, b_);
  }
  BufferSink buffer;
  ASSERT_TRUE(Solve(100, &buffer).ok());
  EXPECT_EQ(buffer.spec().rows, 100);
  EXPECT_THAT(buffer.values<double>(), ::testing::ElementsAreArray(b_));
}

TEST_F(SolveTest, SpanOfAnotherSizeOrTypeIsRefused) {
  std::vector<double> small(299);
  SpanSink sink(absl::MakeSpan(small));
  EXPECT_EQ(Solve(100, &sink).code(), absl::StatusCode::kInvalidArgument);
  std::vector<float> floats(300);
  SpanSink float_sink(absl::MakeSpan(floats));
  EXPECT_EQ(Solve(100, &float_sink).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SolveTest, SpanOfAnotherShapeIsRefused) {
  std::vector<double> x(300);
  SpanSink transposed(absl::MakeSpan(x), 3, 100);
  EXPECT_EQ(Solve(100, &transposed).code(), absl::StatusCode::kInvalidArgument);
  SpanSink sink(absl::MakeSpan(x), 100, 3);
  EXPECT_TRUE(Solve(100, &sink).ok());
  EXPECT_EQ(x, b_);
}

TEST_F(SolveTest, ServerThatSendsMoreOrLessThanAnnouncedIsInternal) {
  for (const int64_t rows : {99, 101, 0, -1}) {
    BufferSink sink;
    EXPECT_EQ(Solve(rows, &sink).code(), absl::StatusCode::kInternal) << rows;
  }
  BufferSink sink;
  EXPECT_EQ(Solve(int64_t{1} << 62, &sink).code(), absl::StatusCode::kInternal);
}

TEST_F(SolveTest, MissingOutputsAreRefusedBeforeTheCall) {
  const auto one = MatrixSource::Dense(absl::MakeConstSpan(b_).first(1), 1, 1);
  FactorDescription factor;
  DenseFactors factors;
  BufferSink x;
  const auto refused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(client_->Solve("h", one, {}, nullptr).status().code(), refused);
  EXPECT_EQ(client_->FactorAndSolve(one, one, {}, nullptr, &x).status().code(), refused);
  EXPECT_EQ(client_->FactorAndSolve(one, one, {}, &factor, nullptr).status().code(), refused);
  EXPECT_EQ(client_->Schur(one, {}, nullptr, &x).status().code(), refused);
  EXPECT_EQ(client_->Schur(one, {}, &factor, nullptr).status().code(), refused);
  EXPECT_EQ(client_->Rref(one, {}, nullptr).status().code(), refused);
  EXPECT_EQ(client_->Download("h", nullptr, &x).code(), refused);
  EXPECT_EQ(client_->Download("h", &factors, nullptr).code(), refused);
}

TEST_F(SolveTest, FactorAndSolveSendsMatrixThenRhsAndKeepsTheFactorOnFailure) {
  std::string seen;
  server_.service.factorize_and_solve = [&](grpc::ServerContext*, BothStream* stream) {
    v1::FactorizeAndSolveRequest request;
    while (stream->Read(&request)) {
      if (!request.data().empty()) seen += 'A';
      if (!request.rhs_data().empty()) seen += 'B';
    }
    v1::FactorizeAndSolveResponse response;
    response.mutable_factor()->set_info(2);
    stream->Write(response);
    return ServerStatus(grpc::StatusCode::FAILED_PRECONDITION, "SINGULAR");
  };
  const std::vector<double> a(512 * 512);
  const std::vector<double> b(512);
  BufferSink x;
  FactorDescription factor;
  const auto result =
      client_->FactorAndSolve(MatrixSource::Dense(absl::MakeConstSpan(a), 512, 512),
                              MatrixSource::Dense(absl::MakeConstSpan(b), 512, 1), {}, &factor, &x);
  EXPECT_EQ(result.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Reason(result.status()), "SINGULAR");
  EXPECT_EQ(factor.info, 2);
  EXPECT_THAT(seen, ::testing::MatchesRegex("AA+B"));  // 2 MiB of A, then B
}

}  // namespace
}  // namespace crout::client_test::solve_test
