// SPDX-License-Identifier: Apache-2.0

// Tests payloads and replies in shared memory, also of clients that violate the rules.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/shared_memory/shared_memory_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::shared_memory_test {
namespace {

using ::testing::HasSubstr;
using testing::MemoryFile;

std::string TextOf(const std::vector<double>& a) {
  std::string text = "%%MatrixMarket matrix array real general\n";
  absl::StrAppend(&text, kN, " ", kN, "\n");
  for (const double value : a) text += absl::StrCat(value, "\n");
  return text;
}

TEST_F(SharedMemoryTest, FactorsADenseMatrixWithoutStaging) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  file.Write(Bytes(Matrix(kN)), 4096);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Dense(kN, kN), Range(*region, 4096, kMatrixBytes), &factor).ok());
  ExpectSolves(factor);
  EXPECT_EQ(device().direct_bytes(), kMatrixBytes);
  EXPECT_EQ(Sample("crout_shared_memory_received_bytes_total"), kMatrixBytes);
}

TEST_F(SharedMemoryTest, StagesADenseMatrixThatIsNotRegistered) {
  Start({.registers = false});
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  EXPECT_EQ(core().shared_regions.totals().registered_bytes, 0);
  file.Write(Bytes(Matrix(kN)));
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Dense(kN, kN), Range(*region, 0, kMatrixBytes), &factor).ok());
  ExpectSolves(factor);
  EXPECT_EQ(device().direct_bytes(), 0);
}

class LargeSharedMemoryTest : public SharedMemoryTest,
                              public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Registered, LargeSharedMemoryTest, ::testing::Bool());

// 1536 x 1536 float64 have 18 MiB: several turns.
TEST_P(LargeSharedMemoryTest, ReceivesALargeMatrixInTurns) {
  constexpr int64_t kLarge = 1536;
  constexpr size_t kLargeBytes = kLarge * kLarge * sizeof(double);
  Config config = SmallConfig();
  config.max_shared_memory_bytes = size_t{128} << 20;
  StartServer({.registers = GetParam()}, config);
  const MemoryFile file(kLargeBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  file.Write(Bytes(Matrix(kLarge)));
  v1::Factor factor;
  const grpc::Status status =
      FactorizeRange(Dense(kLarge, kLarge), Range(*region, 0, kLargeBytes), &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(factor.n(), kLarge);
  EXPECT_EQ(device().direct_bytes(), GetParam() ? kLargeBytes : 0);
}

TEST_F(SharedMemoryTest, MixesRangesAndMessages) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string data = Bytes(Matrix(kN));
  file.Write(data);
  v1::Factor factor;
  const grpc::Status status = FactorizeWith(
      Dense(kN, kN),
      [&](int i, v1::FactorizeRequest& request) {
        const size_t third = kMatrixBytes / 3;
        if (i == 1) {
          request.set_data(data.substr(third, third));
        } else {
          *request.mutable_shared_data() =
              Range(*region, i == 0 ? 0 : 2 * third, i == 0 ? third : kMatrixBytes - 2 * third);
        }
        return i < 3;
      },
      &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectSolves(factor);
}

TEST_F(SharedMemoryTest, RefusesRangesOutsideTheRegion) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  v1::Factor factor;
  for (const auto& [offset, size] :
       std::vector<std::pair<uint64_t, uint64_t>>{{kRegionBytes - kMatrixBytes + 1, kMatrixBytes},
                                                  {kRegionBytes + 1, 0},
                                                  {8, ~uint64_t{0}},
                                                  {~uint64_t{0}, 8},
                                                  {~uint64_t{0}, ~uint64_t{0}}}) {
    const grpc::Status status =
        FactorizeRange(Dense(kN, kN), Range(*region, offset, size), &factor);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("its region has 1048576 bytes"));
  }
  // More bytes than the header declares.
  const grpc::Status status =
      FactorizeRange(Dense(kN, kN), Range(*region, 0, kMatrixBytes + 8), &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status less =
      FactorizeRange(Dense(kN, kN), Range(*region, 0, kMatrixBytes - 8), &factor);
  EXPECT_EQ(less.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SharedMemoryTest, ParsesATextAndSparseEntries) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string text = TextOf(Matrix(kN));
  file.Write(text);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Text(), Range(*region, 0, text.size()), &factor).ok());
  EXPECT_EQ(factor.n(), kN);

  v1::MatrixSpec spec;
  spec.mutable_sparse()->set_dtype(v1::DTYPE_FLOAT64);
  spec.mutable_sparse()->set_format(v1::SPARSE_FORMAT_COORDINATE);
  spec.mutable_sparse()->set_rows(kN);
  spec.mutable_sparse()->set_cols(kN);
  spec.mutable_sparse()->set_entries(kN);
  spec.mutable_sparse()->set_index_bytes(4);
  std::vector<int32_t> positions(kN);
  for (int32_t i = 0; i < kN; ++i) positions[i] = i;
  const std::string indices(reinterpret_cast<const char*>(positions.data()), kN * 4);
  const std::string entries = indices + indices + Bytes(std::vector<double>(kN, 2.0));
  file.Write(entries);
  ASSERT_TRUE(FactorizeRange(spec, Range(*region, 0, entries.size()), &factor).ok());
  EXPECT_EQ(factor.n(), kN);
}

TEST_F(SharedMemoryTest, SolvesIntoTheMemoryOfTheRequest) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const std::vector<double> b(kN, 1.0);
  file.Write(Bytes(b));
  Solved expected;
  ASSERT_TRUE(Solve(factor.handle(), b, &expected).ok());
  constexpr size_t kX = 8192;
  const size_t size = kN * sizeof(double);
  for (const size_t room : {size, size - 1}) {
    grpc::ClientContext context;
    auto stream = stub().Solve(&context);
    v1::SolveRequest request;
    request.mutable_header()->set_handle(factor.handle());
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    *request.mutable_shared_data() = Range(*region, 0, size);
    *request.mutable_shared_reply() = Range(*region, kX, room);
    stream->Write(request);
    stream->WritesDone();
    v1::SolveResponse response;
    std::string data;
    bool shared = false;
    while (stream->Read(&response)) {
      data += response.data();
      if (!response.has_shared_bytes()) continue;
      EXPECT_EQ(response.shared_bytes(), size);
      shared = true;
    }
    ASSERT_TRUE(stream->Finish().ok());
    // A range that is too small is not used.
    EXPECT_EQ(shared, room == size);
    EXPECT_EQ(shared ? file.Read(kX, size) : data, Bytes(expected.x));
  }
  EXPECT_EQ(Sample("crout_shared_memory_sent_bytes_total"), size);
}

TEST_F(SharedMemoryTest, FactorsAndSolvesWithBothPayloadsShared) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const size_t size = kN * sizeof(double);
  file.Write(Bytes(Matrix(kN)));
  file.Write(Bytes(std::vector<double>(kN, 1.0)), kMatrixBytes);
  grpc::ClientContext context;
  auto stream = stub().FactorizeAndSolve(&context);
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
  *request.mutable_shared_data() = Range(*region, 0, kMatrixBytes);
  *request.mutable_shared_rhs_data() = Range(*region, kMatrixBytes, size);
  *request.mutable_shared_reply() = Range(*region, kMatrixBytes + size, size);
  stream->Write(request);
  stream->WritesDone();
  v1::FactorizeAndSolveResponse response;
  bool shared = false;
  while (stream->Read(&response)) {
    shared |= response.shared_bytes() == size;
    if (response.has_result()) {
      EXPECT_LT(response.result().backward_error(), 1e-14);
    }
  }
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(shared);
}

TEST_F(SharedMemoryTest, RunsASeriesInSharedMemory) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const size_t size = kN * sizeof(double);
  const size_t at_x = kMatrixBytes + 2 * size;
  grpc::ClientContext context;
  auto stream = stub().SolveSeries(&context);
  for (int step = 0; step < 3; ++step) {
    file.Write(Bytes(Matrix(kN, step)));
    file.Write(Bytes(std::vector<double>(kN, 1.0 + step)), kMatrixBytes);
    file.Write(Bytes(std::vector<double>(kN, 0.0)), kMatrixBytes + size);
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    *request.mutable_header()->mutable_x0() = Dense(kN, 1);
    *request.mutable_shared_data() = Range(*region, 0, kMatrixBytes);
    *request.mutable_shared_rhs_data() = Range(*region, kMatrixBytes, size);
    *request.mutable_shared_x0_data() = Range(*region, kMatrixBytes + size, size);
    if (step < 2) *request.mutable_shared_reply() = Range(*region, at_x, size);
    ASSERT_TRUE(stream->Write(request));
    v1::SolveSeriesResponse response;
    uint64_t shared = 0;
    std::string data;
    do {
      ASSERT_TRUE(stream->Read(&response));
      shared += response.shared_bytes();
      data += response.data();
    } while (!response.has_result());
    EXPECT_LT(response.result().backward_error(), 1e-12);
    // The memory of a step is not used for the reply of the next one.
    EXPECT_EQ(shared, step < 2 ? size : 0);
    EXPECT_EQ(data.size(), step < 2 ? 0 : size);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A client that changes the memory during the upload gets a result or an error, and the server
// continues.
TEST_F(SharedMemoryTest, SurvivesAClientThatRewritesItsMemory) {
  Start({.has_sparse_ops = true});
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string text = TextOf(Matrix(kN));
  std::vector<int32_t> positions(kN);
  for (int32_t i = 0; i < kN; ++i) positions[i] = i;
  const std::string indices(reinterpret_cast<const char*>(positions.data()), kN * 4);
  const std::string entries = indices + indices + Bytes(std::vector<double>(kN, 2.0));
  v1::MatrixSpec sparse;
  sparse.mutable_sparse()->set_dtype(v1::DTYPE_FLOAT64);
  sparse.mutable_sparse()->set_format(v1::SPARSE_FORMAT_COORDINATE);
  sparse.mutable_sparse()->set_rows(kN);
  sparse.mutable_sparse()->set_cols(kN);
  sparse.mutable_sparse()->set_entries(kN);
  sparse.mutable_sparse()->set_index_bytes(4);
  const std::vector<std::pair<v1::MatrixSpec, std::string>> payloads = {
      {Dense(kN, kN), Bytes(Matrix(kN))}, {Text(), text}, {sparse, entries}};
  for (const auto& [spec, payload] : payloads) {
    std::atomic<bool> stop = false;
    std::thread rewriter([&, payload = payload] {
      for (unsigned i = 0; !stop; ++i) {
        file.Write(payload);
        const size_t at = i * 97 % (payload.size() - 8);
        file.Write(std::string(8, static_cast<char>(i)), at);
      }
    });
    for (int i = 0; i < 50; ++i) {
      v1::Factor factor;
      const grpc::Status status = FactorizeRange(spec, Range(*region, 0, payload.size()), &factor);
      EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
          << status.error_message();
    }
    stop = true;
    rewriter.join();
    // The payload as it should be gives the right result again.
    file.Write(payload);
    v1::Factor factor;
    EXPECT_TRUE(FactorizeRange(spec, Range(*region, 0, payload.size()), &factor).ok());
  }
}

}  // namespace
}  // namespace crout::shared_memory_test
