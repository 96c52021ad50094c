// SPDX-License-Identifier: Apache-2.0

// A fixture for RPC tests of batches: a server that accepts them, encoders of payloads, and
// functions that run whole calls.
#ifndef CROUT_TESTS_SERVER_RPC_BATCH_BATCH_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_BATCH_BATCH_FIXTURE_H_

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "kernels/host/methods.h"
#include "kernels/irregular_batch.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

// A rows x cols matrix of a batch, column-major.
struct Member {
  int64_t rows = 0;
  int64_t cols = 0;
  HostMatrix values;
};

inline Member Random(int64_t rows, int64_t cols, uint64_t seed) {
  return {rows, cols, RandomMatrix(rows, cols, seed)};
}

// An encoded batch: `spec` describes `data`. Also used for the right-hand sides of a batch.
struct Encoded {
  v1::BatchSpec spec;
  std::string data;
};

// Encodes members in float64 in the wire format: a pair of numbers for each member, then the
// values. The second number is the number of columns. The first is the element of `first`, by
// default the number of rows.
inline Encoded Encode(const std::vector<Member>& members, const std::vector<int64_t>& first = {}) {
  std::vector<MatrixShape> shapes;
  for (const Member& member : members) shapes.push_back({member.rows, member.cols});
  std::vector<BatchMember> places(members.size());
  const BatchExtent extent = *PackMembers(DType::kFloat64, shapes, places);
  const size_t begin = shapes.size() * sizeof(MatrixShape);
  Encoded encoded;
  encoded.data.resize(begin + extent.bytes);
  for (size_t k = 0; k < members.size(); ++k) {
    MatrixShape pair = shapes[k];
    if (!first.empty()) pair.rows = first[k];
    std::memcpy(encoded.data.data() + k * sizeof(pair), &pair, sizeof(pair));
    const auto values = std::as_bytes(std::span(members[k].values));
    std::transform(values.begin(), values.end(),
                   encoded.data.begin() + static_cast<int64_t>(begin) +
                       places[k].offset * static_cast<int64_t>(sizeof(double)),
                   [](std::byte byte) { return static_cast<char>(byte); });
  }
  encoded.spec.set_dtype(v1::DTYPE_FLOAT64);
  encoded.spec.set_members(extent.members);
  encoded.spec.set_max_rows(extent.max_rows);
  encoded.spec.set_max_cols(extent.max_cols);
  encoded.spec.set_total_rows(extent.total_rows);
  encoded.spec.set_total_cols(extent.total_cols);
  encoded.spec.set_value_bytes(static_cast<int64_t>(extent.bytes));
  return encoded;
}

// Returns the `count` numbers that begin at byte `offset`.
template <class T>
std::vector<T> Array(const std::string& data, size_t offset, size_t count) {
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), data.data() + offset, count * sizeof(T));
  return values;
}

struct Factored {
  grpc::Status status;
  v1::Factor factor;
  std::string figures;
};

// The vectors have one element per right-hand side.
struct SolvedSystems {
  grpc::Status status;
  v1::SolveResult result;
  std::vector<HostMatrix> x;
  std::vector<double> errors;
  std::vector<int32_t> info;
};

// Matrices are in float64. Functions that run a call return its status.
class RpcBatchTest : public RpcTest {
 protected:
  void SetUp() override { Start(SmallConfig()); }
  void Start(const Config& config) {
    FakeDeviceOptions options;
    options.register_more = [this](Catalogue& catalogue) {
      catalogue.batch_lu = host::MakeIrrLu(executor_);
    };
    StartServer(options, config);
    before_ = Held();
  }

  static std::vector<Member> Mixed() {
    return {Random(5, 5, 1), Random(1, 1, 2), Random(0, 0, 3), Random(40, 40, 4), Random(7, 3, 5)};
  }

  Factored FactorWith(const v1::FactorizeHeader& header, const std::string& data,
                      grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    auto stream = stub().Factorize(context == nullptr ? &own : context);
    v1::FactorizeRequest request;
    *request.mutable_header() = header;
    stream->Write(request);
    // Splits the payload in two messages at a byte within a member.
    for (const auto& [begin, count] :
         {std::pair(size_t{0}, data.size() / 2 + 1), std::pair(data.size() / 2 + 1, data.size())}) {
      v1::FactorizeRequest next;
      if (begin < data.size()) next.set_data(data.substr(begin, count));
      stream->Write(next);
    }
    stream->WritesDone();
    return ReadReply(*stream);
  }
  template <class Stream>
  static Factored ReadReply(Stream& stream) {
    return ReadReply<v1::FactorizeResponse>(stream);
  }
  template <class Response, class Stream>
  static Factored ReadReply(Stream& stream) {
    Factored factored;
    Response response;
    while (stream.Read(&response)) {
      factored.figures += response.member_data();
      if (response.has_factor()) factored.factor = response.factor();
    }
    factored.status = stream.Finish();
    return factored;
  }
  Factored Factor(const std::vector<Member>& members) {
    const Encoded batch = Encode(members);
    return FactorWith(HeaderOf(batch), batch.data);
  }
  static v1::FactorizeHeader HeaderOf(const Encoded& batch) {
    v1::FactorizeHeader header;
    *header.mutable_matrix()->mutable_batch() = batch.spec;
    return header;
  }
  Factored Refactor(const std::string& handle, const std::vector<Member>& members) {
    const Encoded batch = Encode(members);
    grpc::ClientContext context;
    auto stream = stub().Refactorize(&context);
    v1::RefactorizeRequest request;
    request.mutable_header()->set_handle(handle);
    *request.mutable_header()->mutable_matrix()->mutable_batch() = batch.spec;
    request.set_data(batch.data);
    stream->WriteLast(request, {});
    return ReadReply<v1::RefactorizeResponse>(*stream);
  }

  SolvedSystems SolveWith(const v1::SolveHeader& header, const std::string& data,
                          const std::vector<Member>& rhs) {
    grpc::ClientContext context;
    auto stream = stub().Solve(&context);
    v1::SolveRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    SolvedSystems solved;
    std::string reply;
    v1::SolveResponse response;
    while (stream->Read(&response)) {
      reply += response.data();
      if (response.has_result()) solved.result = response.result();
    }
    solved.status = stream->Finish();
    if (solved.status.ok()) ReadSystems(reply, rhs, solved);
    return solved;
  }
  // Unpacks the `data` of a Solve reply into solutions, backward errors and info.
  static void ReadSystems(const std::string& reply, const std::vector<Member>& rhs,
                          SolvedSystems& solved) {
    size_t offset = 0;
    for (const Member& b : rhs) {
      solved.x.push_back(Array<double>(reply, offset, b.values.size()));
      offset = (offset + b.values.size() * sizeof(double) + 15) / 16 * 16;
    }
    solved.errors = Array<double>(reply, offset, rhs.size());
    solved.info = Array<int32_t>(reply, offset + rhs.size() * sizeof(double), rhs.size());
    EXPECT_EQ(reply.size(), offset + rhs.size() * (sizeof(double) + sizeof(int32_t)));
  }
  static void SetRhs(const Encoded& rhs, v1::MatrixSpec& spec) {
    v1::BatchRhsSpec& systems = *spec.mutable_batch_rhs();
    systems.set_dtype(rhs.spec.dtype());
    systems.set_systems(rhs.spec.members());
    systems.set_value_bytes(rhs.spec.value_bytes());
  }
  static v1::SolveHeader Header(const std::string& handle, const Encoded& rhs) {
    v1::SolveHeader header;
    header.set_handle(handle);
    SetRhs(rhs, *header.mutable_rhs());
    return header;
  }
  SolvedSystems SolveMembers(const std::string& handle, const std::vector<int64_t>& members,
                             const std::vector<Member>& rhs) {
    const Encoded encoded = Encode(rhs, members);
    return SolveWith(Header(handle, encoded), encoded.data, rhs);
  }

  static void ExpectRefused(const grpc::Status& status, grpc::StatusCode code,
                            const std::string& text) {
    EXPECT_EQ(status.error_code(), code) << status.error_message();
    EXPECT_THAT(status.error_message(), ::testing::HasSubstr(text));
  }

  host::Executor executor_{2};
  Holdings before_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_BATCH_BATCH_FIXTURE_H_
