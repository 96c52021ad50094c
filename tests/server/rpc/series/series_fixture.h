// SPDX-License-Identifier: Apache-2.0

// A fixture for tests of SolveSeries. Matrices are dense kN x kN float64 matrices, column-major.
#ifndef CROUT_TESTS_SERVER_RPC_SERIES_SERIES_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_SERIES_SERIES_FIXTURE_H_

#include <cmath>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/ratios.h"

namespace crout::testing {

inline constexpr int64_t kN = 40;
inline const double kAccuracy = std::sqrt(static_cast<double>(kN)) * 0x1p-53;

class RpcSeriesTest : public RpcTest {
 protected:
  struct Answer {
    std::optional<v1::Factor> factor;
    v1::SeriesResult result;
    std::vector<double> x;
  };

  // A stream. The functions Send, Write, Receive and Step return false if the stream has ended;
  // Status() then returns why.
  class Series {
   public:
    explicit Series(v1::FactorizationService::Stub& stub, const std::string& tenant = "default",
                    absl::Time deadline = absl::InfiniteFuture()) {
      context_.AddMetadata("crout-tenant", tenant);
      context_.set_deadline(absl::ToChronoTime(deadline));
      stream_ = stub.SolveSeries(&context_);
    }

    // Sends a step with the matrix `a`, or with right-hand sides only if `a` is empty. `b` is kN x
    // nrhs.
    bool Send(const std::vector<double>& a, const std::vector<double>& b,
              v1::SolveSeriesHeader header = {}) {
      if (!a.empty()) *header.mutable_matrix() = Dense(kN, kN);
      *header.mutable_rhs() = Dense(kN, static_cast<int64_t>(b.size()) / kN);
      v1::SolveSeriesRequest request;
      *request.mutable_header() = header;
      request.set_data(Bytes(a));
      request.set_rhs_data(Bytes(b));
      return stream_->Write(request);
    }
    bool Write(const v1::SolveSeriesRequest& request) { return stream_->Write(request); }
    // Reads the reply to a step.
    bool Receive(Answer* answer) {
      *answer = {};
      std::string data;
      v1::SolveSeriesResponse response;
      while (stream_->Read(&response)) {
        if (response.has_factor()) answer->factor = response.factor();
        data += response.data();
        if (!response.has_result()) continue;
        answer->result = response.result();
        answer->x.resize(data.size() / sizeof(double));
        if (!data.empty()) std::memcpy(answer->x.data(), data.data(), data.size());
        return true;
      }
      return false;
    }
    bool Step(const std::vector<double>& a, const std::vector<double>& b, Answer* answer,
              const v1::SolveSeriesHeader& header = {}) {
      return Send(a, b, header) && Receive(answer);
    }
    void HalfClose() { stream_->WritesDone(); }
    grpc::Status Finish() {
      stream_->WritesDone();
      return Status();
    }
    grpc::Status Status() {
      v1::SolveSeriesResponse response;
      while (stream_->Read(&response)) {
      }
      return stream_->Finish();
    }
    void Cancel() { context_.TryCancel(); }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::SolveSeriesRequest, v1::SolveSeriesResponse>>
        stream_;
  };

  // Returns `a` with a random number of up to `change` added to each entry.
  static std::vector<double> Changed(std::vector<double> a, double change, uint64_t seed) {
    const HostMatrix random = RandomMatrix(kN, kN, seed);
    for (size_t i = 0; i < a.size(); ++i) a[i] += change * random[i];
    return a;
  }
  static void ExpectSolved(const Answer& answer, const std::vector<double>& a,
                           const std::vector<double>& b) {
    EXPECT_TRUE(answer.result.solved());
    EXPECT_TRUE(answer.result.accurate());
    EXPECT_THAT(answer.result.warnings(), ::testing::ElementsAre());
    ASSERT_EQ(answer.x.size(), b.size());
    EXPECT_LE(BackwardError(a, kN, Op::kNone, answer.x, b, static_cast<int64_t>(b.size()) / kN),
              1.1 * kAccuracy);
  }
  static void ExpectMatrixGone(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION) << status.error_message();
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr("send the step with its matrix"));
    EXPECT_THAT(status.error_details(), ::testing::HasSubstr("MATRIX_GONE"));
  }
  static v1::SolveSeriesHeader With(v1::SeriesStrategy strategy) {
    v1::SolveSeriesHeader header;
    header.set_strategy(strategy);
    return header;
  }
  std::vector<v1::Factor> Listed() {
    grpc::ClientContext context;
    v1::ListFactorsResponse response;
    EXPECT_TRUE(stub().ListFactors(&context, {}, &response).ok());
    return {response.factors().begin(), response.factors().end()};
  }

  // Replaces the factor of `handle` by the factor of `a` in a separate call.
  grpc::Status Replace(const std::string& handle, const std::vector<double>& a) {
    grpc::ClientContext context;
    auto stream = stub().Refactorize(&context);
    v1::RefactorizeRequest request;
    request.mutable_header()->set_handle(handle);
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    request.set_data(Bytes(a));
    stream->Write(request);
    stream->WritesDone();
    v1::RefactorizeResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }

  const std::vector<double> a_ = RandomMatrix(kN, kN, 3);
  const std::vector<double> b_ = RandomMatrix(kN, 2, 5);
};

// Returns the bytes of the parts of a change, concatenated.
template <class... Parts>
std::string Concatenate(const Parts&... parts) {
  std::string data;
  (data.append(reinterpret_cast<const char*>(parts.data()), parts.size() * sizeof(parts[0])), ...);
  return data;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_SERIES_SERIES_FIXTURE_H_
