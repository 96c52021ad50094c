// SPDX-License-Identifier: Apache-2.0

// Fixture for batch RPC tests: a server that accepts batches, encoders for payloads, and helpers
// that run whole calls.
#ifndef CROUT_TESTS_SERVER_RPC_BATCH_FIXTURE_H_
#define CROUT_TESTS_SERVER_RPC_BATCH_FIXTURE_H_

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
#include "tests/support/gallery.h"

namespace crout::testing {

// One matrix of a batch, column-major.
struct Member {
  int64_t rows = 0;
  int64_t cols = 0;
  HostMatrix values;
};

inline Member Random(int64_t rows, int64_t cols, uint64_t seed) {
  return {rows, cols, RandomMatrix(rows, cols, seed)};
}

// An encoded batch: `spec` describes `data`. Also used for the right-hand sides of SolveBatch.
struct Encoded {
  v1::BatchSpec spec;
  std::string data;
};

// Encodes members as (first number, columns) pairs followed by packed values. `first` supplies the
// first number of each pair; by default it is the member's row count.
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

struct SolvedSystems {
  grpc::Status status;
  v1::SolveBatchResult result;
  std::vector<HostMatrix> x;
  std::vector<double> errors;
  std::vector<int32_t> info;
};

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

  Factored FactorWith(const v1::FactorizeBatchHeader& header, const std::string& data,
                      grpc::ClientContext* context = nullptr) {
    grpc::ClientContext own;
    auto stream = stub().FactorizeBatch(context == nullptr ? &own : context);
    v1::FactorizeBatchRequest request;
    *request.mutable_header() = header;
    stream->Write(request);
    // Split the payload so that neither part ends at a member boundary.
    for (const auto& [begin, count] :
         {std::pair(size_t{0}, data.size() / 2 + 1), std::pair(data.size() / 2 + 1, data.size())}) {
      v1::FactorizeBatchRequest next;
      if (begin < data.size()) next.set_data(data.substr(begin, count));
      stream->Write(next);
    }
    stream->WritesDone();
    return ReadReply(*stream);
  }
  template <class Stream>
  static Factored ReadReply(Stream& stream) {
    Factored factored;
    v1::FactorizeBatchResponse response;
    while (stream.Read(&response)) {
      factored.figures += response.data();
      if (response.has_factor()) factored.factor = response.factor();
    }
    factored.status = stream.Finish();
    return factored;
  }
  Factored Factor(const std::vector<Member>& members, const std::string& handle = "") {
    const Encoded batch = Encode(members);
    v1::FactorizeBatchHeader header;
    *header.mutable_batch() = batch.spec;
    header.set_handle(handle);
    return FactorWith(header, batch.data);
  }

  SolvedSystems SolveWith(const v1::SolveBatchHeader& header, const std::string& data,
                          const std::vector<Member>& rhs) {
    grpc::ClientContext context;
    auto stream = stub().SolveBatch(&context);
    v1::SolveBatchRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    SolvedSystems solved;
    std::string reply;
    v1::SolveBatchResponse response;
    while (stream->Read(&response)) {
      reply += response.data();
      if (response.has_result()) solved.result = response.result();
    }
    solved.status = stream->Finish();
    if (solved.status.ok()) ReadSystems(reply, rhs, solved);
    return solved;
  }
  // Unpacks the `data` of a SolveBatch reply into solutions, backward errors and info.
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
  static v1::SolveBatchHeader Header(const std::string& handle, const Encoded& rhs) {
    v1::SolveBatchHeader header;
    header.set_handle(handle);
    header.set_dtype(rhs.spec.dtype());
    header.set_systems(rhs.spec.members());
    header.set_value_bytes(rhs.spec.value_bytes());
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

#endif  // CROUT_TESTS_SERVER_RPC_BATCH_FIXTURE_H_
