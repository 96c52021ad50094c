// SPDX-License-Identifier: Apache-2.0

// A fixture for SolveSeries streams with sparse matrices in binary form.
#ifndef CROUT_TESTS_SERVER_RPC_SERIES_SPARSE_STREAM_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_SERIES_SPARSE_STREAM_FIXTURE_H_

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"

namespace crout::testing {

struct StreamAnswer {
  std::optional<v1::Factor> factor;
  v1::SeriesResult result;
  std::vector<double> x;
};

// A stream with one method. Its steps solve for the right-hand side b_, whose size is the order.
// Step and Receive return false if the stream has ended; Finish() then returns why.
class RpcSparseStreamTest : public RpcSparseTest {
 protected:
  explicit RpcSparseStreamTest(v1::Algorithm method) : RpcSparseTest({method}) {}

  void Open(v1::SeriesStrategy strategy, const std::string& handle = "") {
    context_ = std::make_unique<grpc::ClientContext>();
    stream_ = stub().SolveSeries(context_.get());
    first_ = {};
    first_.set_handle(handle);
    first_.set_strategy(strategy);
    first_.mutable_options()->set_algorithm(methods_.front());
  }
  // Runs a step with the matrix `a`, or only with its values if `values_alone`.
  bool Step(const Triplets& a, bool values_alone, StreamAnswer* answer) {
    v1::SolveSeriesRequest request;
    *request.mutable_header() = std::exchange(first_, {});
    if (values_alone) {
      request.mutable_header()->mutable_change()->set_values(std::ssize(a));
      request.mutable_header()->mutable_change()->set_entry_digest(entry_digest_);
      std::vector<double> values;
      for (const Triplet& entry : a) values.push_back(entry.value);
      request.set_data(Bytes(values));
    } else {
      *request.mutable_header()->mutable_matrix() = Sparse(n(), a);
      request.set_data(BytesOf(a));
    }
    *request.mutable_header()->mutable_rhs() = Dense(n(), 1);
    request.set_rhs_data(Bytes(b_));
    if (!x0_.empty()) {
      *request.mutable_header()->mutable_x0() = Dense(n(), 1);
      request.set_x0_data(Bytes(std::exchange(x0_, {})));
    }
    return stream_->Write(request) && Receive(answer);
  }
  // Runs a step that uses the previous matrix.
  bool StepWithoutMatrix(StreamAnswer* answer) {
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_rhs() = Dense(n(), 1);
    request.set_rhs_data(Bytes(b_));
    return stream_->Write(request) && Receive(answer);
  }
  bool Receive(StreamAnswer* answer) {
    *answer = {};
    std::string data;
    v1::SolveSeriesResponse response;
    while (stream_->Read(&response)) {
      if (response.has_factor()) answer->factor = response.factor();
      data += response.data();
      if (!response.has_result()) continue;
      answer->result = response.result();
      entry_digest_ = answer->result.entry_digest();
      answer->x.resize(data.size() / sizeof(double));
      if (!data.empty()) std::memcpy(answer->x.data(), data.data(), data.size());
      return true;
    }
    return false;
  }
  grpc::Status Finish() {
    stream_->WritesDone();
    v1::SolveSeriesResponse response;
    while (stream_->Read(&response)) {
    }
    return stream_->Finish();
  }
  void ExpectSolved(const StreamAnswer& answer, const Triplets& a) {
    EXPECT_TRUE(answer.result.accurate());
    ASSERT_EQ(std::ssize(answer.x), n());
    EXPECT_LT(BackwardError(a, false, answer.x, b_), 1e-14);
  }

  int64_t n() const { return std::ssize(b_); }

  std::vector<double> b_;
  std::vector<double> x0_;    // initial guess of the next Step(); empty: the previous X
  std::string entry_digest_;  // digest of the previous matrix
  v1::SolveSeriesHeader first_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSeriesRequest, v1::SolveSeriesResponse>>
      stream_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_SERIES_SPARSE_STREAM_FIXTURE_H_
