// SPDX-License-Identifier: Apache-2.0

// Tests coordinate texts on a device with sparse operations: replies, memory, and support in every
// call.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "kernels/sparse_view.h"
#include "kernels/util/size_class.h"
#include "tests/server/rpc/fixture.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/ratios.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_test {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kN = 60;

// Returns the text of the stored entries of `a`. Each entry is split in `parts` equal parts.
// `parts` is a power of two, so that their sum is exact.
std::string TextOf(const HostMatrix& a, int64_t n, int parts = 2) {
  std::string lines;
  int64_t count = 0;
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      const double v = a[i + j * n];
      if (v == 0 && !std::signbit(v)) continue;
      for (int part = 0; part < parts; ++part, ++count) {
        absl::StrAppendFormat(&lines, "%d %d %.17g\n", i + 1, j + 1, v / parts);
      }
    }
  }
  return absl::StrCat("%%MatrixMarket matrix coordinate real general\n", n, " ", n, " ", count,
                      "\n", lines);
}

class RpcSparseTest : public RpcTest {
 protected:
  void Start(size_t device_budget = size_t{48} << 20) {
    Config config = SmallConfig();
    config.pool.device_budget_bytes = device_budget;
    FakeDeviceOptions options;
    options.has_sparse_ops = true;
    StartServer(options, config);
  }

  static v1::FactorizeHeader Header(const v1::MatrixSpec& matrix) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = matrix;
    return header;
  }
  grpc::Status FactorizeText(const std::string& text, v1::Factor* factor) {
    return Factorize(Header(Text()), text, factor);
  }

  // Replaces the factor of `handle` by the factor of the given matrix.
  grpc::Status Refactorize(const std::string& handle, const v1::MatrixSpec& matrix,
                           const std::string& data) {
    grpc::ClientContext context;
    auto stream = stub().Refactorize(&context);
    v1::RefactorizeRequest request;
    request.mutable_header()->set_handle(handle);
    *request.mutable_header()->mutable_matrix() = matrix;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    v1::RefactorizeResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }

  // Downloads L, U and the permutation.
  std::string Download(const std::string& handle) {
    grpc::ClientContext context;
    v1::GetFactorsRequest request;
    request.set_handle(handle);
    const auto stream = stub().GetFactors(&context, request);
    std::string all;
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
      if (response.has_header()) {
        for (const auto row : response.header().permutation()) absl::StrAppend(&all, row, " ");
      }
      all += response.data();
    }
    EXPECT_TRUE(stream->Finish().ok());
    return all;
  }

  void ExpectSolves(const std::string& handle, const HostMatrix& a) {
    const std::vector<double> b(kN, 1.0);
    Solved solved;
    const grpc::Status status = Solve(handle, b, &solved);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_TRUE(solved.result.has_backward_error());
    EXPECT_LT(solved.result.backward_error(), 1e-14);
    EXPECT_LT(BackwardError(a, kN, Op::kNone, solved.x, b, 1), 1e-14);
  }

  const HostMatrix a_ = RandomSparse(kN, 0.03, 3);
  const std::string text_ = TextOf(a_, kN);
};

TEST_F(RpcSparseTest, FactorsAreThoseOfTheDenseUploadAndCostLess) {
  Start();
  v1::Factor dense, sparse;
  ASSERT_TRUE(Factorize(Header(Dense(kN, kN)), Bytes(a_), &dense).ok());
  ASSERT_TRUE(FactorizeText(text_, &sparse).ok());
  EXPECT_EQ(Download(sparse.handle()), Download(dense.handle()));
  EXPECT_EQ(sparse.norm_one(), dense.norm_one());
  EXPECT_EQ(sparse.norm_inf(), dense.norm_inf());
  EXPECT_EQ(sparse.quality(), dense.quality());
  EXPECT_TRUE(sparse.has_matrix());
  EXPECT_EQ(sparse.nnz(), PackSparse(a_, kN, DType::kFloat64).nonzeros);
  const size_t block = SparseLayout(kN, sparse.nnz(), DType::kFloat64).bytes;
  EXPECT_EQ(dense.bytes() - sparse.bytes(),
            BlockBytes(kN * kN * sizeof(double)) - BlockBytes(block));
  ExpectSolves(sparse.handle(), a_);
  ExpectSolves(dense.handle(), a_);
}

TEST_F(RpcSparseTest, NearlyDenseTextsAreStoredAsDense) {
  Start();
  const HostMatrix full = RandomSparse(kN, 0.2, 3);
  v1::Factor dense, text;
  ASSERT_TRUE(Factorize(Header(Dense(kN, kN)), Bytes(full), &dense).ok());
  ASSERT_TRUE(FactorizeText(TextOf(full, kN), &text).ok());
  EXPECT_EQ(text.bytes(), dense.bytes());
  ExpectSolves(text.handle(), full);
}

TEST_F(RpcSparseTest, FitsWhenTheDenseMatrixWithItsFactorDoesNot) {
  constexpr int64_t kLarge = 600;
  const size_t lu = BlockBytes(kLarge * kLarge * sizeof(double));
  Start(lu + lu / 4);
  const Holdings before = Idle();
  const HostMatrix a = RandomSparse(kLarge, 0.002, 3);
  v1::Factor factor;
  EXPECT_EQ(Factorize(Header(Dense(kLarge, kLarge)), Bytes(a), &factor).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectHeldSoon(before);
  ASSERT_TRUE(FactorizeText(TextOf(a, kLarge), &factor).ok());
  const Holdings after = Idle();
  EXPECT_EQ(after.device_reserved, static_cast<size_t>(factor.bytes()));
  EXPECT_LE(after.device_bytes, after.device_reserved);
  EXPECT_EQ(after.host_reserved, before.host_reserved);
}

TEST_F(RpcSparseTest, TheEstimateEqualsTheCost) {
  Start();
  for (const double density : {0.03, 0.2}) {
    const HostMatrix a = RandomSparse(kN, density, 3);
    v1::FactorizeHeader header = Header(Text());
    header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
    v1::Factor factor;
    ASSERT_TRUE(Factorize(header, TextOf(a, kN), &factor).ok());
    v1::EstimateFactorizeRequest request;
    request.set_n(kN);
    request.set_nnz(factor.nnz());
    request.set_matrix_dtype(v1::DTYPE_FLOAT64);
    *request.mutable_options() = header.options();
    v1::EstimateFactorizeResponse estimate;
    grpc::ClientContext context;
    ASSERT_TRUE(stub().EstimateFactorize(&context, request, &estimate).ok());
    EXPECT_EQ(estimate.cached_bytes(), factor.bytes());
  }
}

TEST_F(RpcSparseTest, WithoutKeepMatrixNoMatrixIsStored) {
  Start();
  v1::FactorizeHeader header = Header(Text());
  header.mutable_options()->set_keep_matrix(false);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(header, text_, &factor).ok());
  EXPECT_FALSE(factor.has_matrix());
  Solved solved;
  ASSERT_TRUE(Solve(factor.handle(), std::vector<double>(kN, 1.0), &solved).ok());
  EXPECT_FALSE(solved.result.has_backward_error());
  *header.mutable_matrix() = Dense(kN, kN);
  v1::Factor dense;
  ASSERT_TRUE(Factorize(header, Bytes(a_), &dense).ok());
  EXPECT_EQ(factor.bytes(), dense.bytes());
}

TEST_F(RpcSparseTest, VersionsMayBeSparseOrDense) {
  Start();
  const HostMatrix next = RandomSparse(kN, 0.03, 9);
  v1::Factor from_dense, from_text;
  ASSERT_TRUE(Factorize(Header(Dense(kN, kN)), Bytes(a_), &from_dense).ok());
  ASSERT_TRUE(FactorizeText(text_, &from_text).ok());
  ASSERT_TRUE(Refactorize(from_dense.handle(), Text(), TextOf(next, kN)).ok());
  ASSERT_TRUE(Refactorize(from_text.handle(), Dense(kN, kN), Bytes(next)).ok());
  ExpectSolves(from_dense.handle(), next);
  ExpectSolves(from_text.handle(), next);
  EXPECT_EQ(Download(from_dense.handle()), Download(from_text.handle()));
}

TEST_F(RpcSparseTest, SolvesAfterEvictionToHostMemory) {
  Start();
  v1::Factor factor;
  ASSERT_TRUE(FactorizeText(text_, &factor).ok());
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  {
    ASSERT_OK_AND_ASSIGN(const Reservation all,
                         core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
    EXPECT_EQ(Held().device_bytes, 0u);
    EXPECT_EQ(Held().host_reserved, static_cast<size_t>(factor.bytes()));
  }
  ExpectSolves(factor.handle(), a_);
  EXPECT_EQ(Idle().device_reserved, static_cast<size_t>(factor.bytes()));
}

TEST_F(RpcSparseTest, FactorizeAndSolveRefinesAndBounds) {
  Start();
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Text();
  *header.mutable_rhs() = Dense(kN, 1);
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  header.mutable_solve()->set_max_refinement_steps(10);
  header.mutable_solve()->set_error_bound(true);
  header.mutable_solve()->set_componentwise_error(true);
  const std::vector<double> b(kN, 1.0);
  const SolvedAtOnce answer = FactorizeAndSolve(header, text_, Bytes(b));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_GT(answer.result.refinement_steps(), 0);
  EXPECT_LT(answer.result.backward_error(), 1e-15);
  EXPECT_LT(answer.result.componentwise_error(), 1e-14);
  EXPECT_LT(answer.result.forward_error_bound(), 1e-9);
  HostMatrix x(kN);
  ASSERT_EQ(answer.data.size(), kN * sizeof(double));
  std::memcpy(x.data(), answer.data.data(), answer.data.size());
  EXPECT_LT(BackwardError(a_, kN, Op::kNone, x, b, 1), 1e-15);
  ExpectHeldSoon(Holdings());
}

TEST_F(RpcSparseTest, MethodsThatTakeDenseMatricesGetThem) {
  Start();
  v1::FactorizeAndSolveHeader direct;
  *direct.mutable_matrix() = Text();
  *direct.mutable_rhs() = Dense(kN, 1);
  direct.mutable_options()->set_algorithm(v1::ALGORITHM_GAUSS_JORDAN);
  const SolvedAtOnce answer = FactorizeAndSolve(direct, text_, Bytes(std::vector<double>(kN, 1)));
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  EXPECT_LT(answer.result.backward_error(), 1e-13);

  grpc::ClientContext context;
  const auto stream = stub().ComputeSchurComplement(&context);
  v1::ComputeSchurComplementRequest request;
  *request.mutable_header()->mutable_matrix() = Text();
  request.mutable_header()->set_leading_order(kN / 2);
  request.set_data(text_);
  stream->Write(request);
  stream->WritesDone();
  v1::ComputeSchurComplementResponse response;
  v1::ComplementResult result;
  while (stream->Read(&response)) {
    if (response.has_result()) result = response.result();
  }
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_LT(result.backward_error(), 1e-14);
}

TEST_F(RpcSparseTest, RefusesOverflowOfTheType) {
  Start();
  for (const char* value : {"1e39", "-1e300"}) {
    HostMatrix a = a_;
    a[3 + 17 * kN] = 0;
    std::string text = TextOf(a, kN);
    const size_t size = text.find('\n') + 1;
    const size_t end = text.find('\n', size);
    const int64_t lines = std::count(text.begin(), text.end(), '\n') - 2;
    text.replace(size, end - size, absl::StrCat(kN, " ", kN, " ", lines + 1));
    absl::StrAppend(&text, "4 18 ", value, "\n");
    v1::Factor factor;
    const grpc::Status status = Factorize(Header(Text(v1::DTYPE_FLOAT32)), text, &factor);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(),
                HasSubstr("header.matrix: the value at row 3, column 17 (0-based) overflows f32"));
    ExpectHeldSoon(Holdings());
  }
}

// During the transfer to the device, host memory is reserved only for the parsed matrix and its
// index by rows.
TEST_F(RpcSparseTest, TheParsedMatrixIsReservedUntilItIsSent) {
  Start();
  device().HoldUploads();
  v1::Factor factor;
  grpc::Status status;
  std::thread caller([&] { status = FactorizeText(TextOf(a_, kN, 1), &factor); });
  WaitUntil([&] { return device().waiting_uploads() == 1; }, "sent");
  const int64_t nonzeros = PackSparse(a_, kN, DType::kFloat64).nonzeros;
  const size_t arrays = SparseLayout(kN, nonzeros, DType::kFloat64).bytes;
  EXPECT_GE(Held().host_reserved, arrays);
  EXPECT_LT(Held().host_reserved, arrays + 64) << "what the reader itself holds";
  EXPECT_EQ(Held().device_bytes, BlockBytes(arrays));
  device().ReleaseUploads();
  caller.join();
  EXPECT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(Idle().host_reserved, 0u);
}

TEST_F(RpcSparseTest, DevicesWithoutSparseOperationsGetADenseMatrix) {
  StartServer();
  v1::Factor dense, text;
  ASSERT_TRUE(Factorize(Header(Dense(kN, kN)), Bytes(a_), &dense).ok());
  ASSERT_TRUE(FactorizeText(text_, &text).ok());
  EXPECT_EQ(text.bytes(), dense.bytes());
  EXPECT_EQ(Download(text.handle()), Download(dense.handle()));
  ExpectSolves(text.handle(), a_);
}

// A matrix in binary form with the specification that describes it.
struct Binary {
  v1::MatrixSpec spec;
  std::string bytes;
};

template <class Index>
Binary BinaryOf(const HostMatrix& a, int64_t n, v1::SparseFormat format) {
  std::vector<Index> first, column;
  std::vector<double> value;
  for (int64_t i = 0; i < n; ++i) {
    if (format == v1::SPARSE_FORMAT_COMPRESSED_ROWS) first.push_back(value.size());
    for (int64_t j = 0; j < n; ++j) {
      const double v = a[i + j * n];
      if (v == 0 && !std::signbit(v)) continue;
      if (format == v1::SPARSE_FORMAT_COORDINATE) first.push_back(i);
      column.push_back(j);
      value.push_back(v);
    }
  }
  if (format == v1::SPARSE_FORMAT_COMPRESSED_ROWS) first.push_back(value.size());
  Binary binary;
  v1::SparseSpec& spec = *binary.spec.mutable_sparse();
  spec.set_format(format);
  spec.set_rows(n);
  spec.set_cols(n);
  spec.set_entries(std::ssize(value));
  spec.set_index_bytes(sizeof(Index));
  const auto append = [&](const auto& items) {
    binary.bytes.append(reinterpret_cast<const char*>(items.data()),
                        items.size() * sizeof(items[0]));
  };
  append(first);
  append(column);
  append(value);
  return binary;
}

TEST_F(RpcSparseTest, BinaryEntriesAndTextGiveEqualFactors) {
  Start();
  v1::Factor text;
  ASSERT_TRUE(FactorizeText(TextOf(a_, kN, 1), &text).ok());
  for (const Binary& binary : {BinaryOf<int32_t>(a_, kN, v1::SPARSE_FORMAT_COORDINATE),
                               BinaryOf<int64_t>(a_, kN, v1::SPARSE_FORMAT_COORDINATE),
                               BinaryOf<int32_t>(a_, kN, v1::SPARSE_FORMAT_COMPRESSED_ROWS),
                               BinaryOf<int64_t>(a_, kN, v1::SPARSE_FORMAT_COMPRESSED_ROWS)}) {
    v1::Factor factor;
    const grpc::Status status = Factorize(Header(binary.spec), binary.bytes, &factor);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(factor.nnz(), text.nnz());
    EXPECT_EQ(factor.bytes(), text.bytes());
    EXPECT_EQ(factor.norm_one(), text.norm_one());
    EXPECT_EQ(Download(factor.handle()), Download(text.handle()));
    ExpectSolves(factor.handle(), a_);
    ASSERT_TRUE(Refactorize(factor.handle(), binary.spec, binary.bytes).ok());
    ExpectSolves(factor.handle(), a_);
  }
  EXPECT_EQ(Idle().host_reserved, 0u);
}

TEST_F(RpcSparseTest, InvalidBinaryEntriesAreReportedInDetail) {
  Start();
  const Binary good = BinaryOf<int32_t>(a_, kN, v1::SPARSE_FORMAT_COMPRESSED_ROWS);
  const auto expect = [&](auto change, const std::string& message) {
    Binary binary = good;
    change(binary);
    v1::Factor factor;
    const grpc::Status status = Factorize(Header(binary.spec), binary.bytes, &factor);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << message;
    EXPECT_THAT(status.error_message(), HasSubstr(message));
    ExpectHeldSoon(Holdings());
  };
  const auto sparse = [](Binary& binary) { return binary.spec.mutable_sparse(); };
  expect([&](Binary& b) { sparse(b)->set_rows(-1); }, "header.matrix.sparse.rows");
  expect([&](Binary& b) { sparse(b)->set_cols(int64_t{1} << 40); }, "header.matrix.sparse.cols");
  expect([&](Binary& b) { sparse(b)->set_entries(-1); }, "header.matrix.sparse.entries");
  expect([&](Binary& b) { sparse(b)->set_entries(int64_t{1} << 31); },
         "header.matrix.sparse.entries");
  expect([&](Binary& b) { sparse(b)->set_index_bytes(2); }, "header.matrix.sparse.index_bytes");
  expect([&](Binary& b) { sparse(b)->set_dtype(static_cast<v1::Dtype>(9)); },
         "header.matrix.sparse.dtype");
  expect([&](Binary& b) { sparse(b)->set_format(static_cast<v1::SparseFormat>(9)); },
         "header.matrix.sparse.format");
  expect([&](Binary& b) { b.bytes.pop_back(); }, "header.matrix: fewer bytes");
  expect([&](Binary& b) { b.bytes.push_back(0); }, "header.matrix: more bytes");
  expect([&](Binary& b) { b.bytes[0] = 1; }, "header.matrix: offset 0");
  // Declaring the largest possible number of entries takes no memory.
  expect([&](Binary& b) { sparse(b)->set_entries((int64_t{1} << 31) - 1); },
         "header.matrix: offset 60");
  expect([&](Binary& b) { sparse(b)->set_cols(kN + 1); }, "is not square");
}

TEST_F(RpcSparseTest, BinaryRightHandSidesAreStoredAsDense) {
  Start();
  HostMatrix b(kN * kN);
  for (int64_t i = 0; i < kN; ++i) b[i + (i * 7 % 3) * kN] = 1;
  const Binary rhs = BinaryOf<int32_t>(b, kN, v1::SPARSE_FORMAT_COORDINATE);
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Text();
  *header.mutable_rhs() = rhs.spec;
  const SolvedAtOnce answer = FactorizeAndSolve(header, text_, rhs.bytes);
  ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
  HostMatrix x(kN * kN);
  ASSERT_EQ(answer.data.size(), x.size() * sizeof(double));
  std::memcpy(x.data(), answer.data.data(), answer.data.size());
  EXPECT_LT(BackwardError(a_, kN, Op::kNone, x, b, kN), 1e-14);
}

}  // namespace
}  // namespace crout::testing::sparse_test
