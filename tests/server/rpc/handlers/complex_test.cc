// SPDX-License-Identifier: Apache-2.0

// Tests calls with complex matrices, complex right-hand sides or both.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/matrices/gallery.h"
#include "tests/support/ratios.h"

namespace crout::testing::complex_test {
namespace {

using ::testing::HasSubstr;
using Complex = std::complex<double>;

constexpr int64_t kN = 30;

v1::Dtype Wire(DType dtype) { return static_cast<v1::Dtype>(static_cast<int>(dtype) + 1); }

class RpcComplexTest : public RpcTest {
 protected:
  static v1::MatrixSpec Spec(int64_t rows, int64_t cols, DType dtype) {
    v1::MatrixSpec spec = Dense(rows, cols);
    spec.mutable_dense()->set_dtype(Wire(dtype));
    return spec;
  }
  static std::string Data(const ComplexMatrix& m, int64_t rows, int64_t cols, DType dtype) {
    const std::vector<std::byte> bytes = Packed(m, rows, cols, dtype);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  static ComplexMatrix Values(const std::string& data, const v1::DenseSpec& spec) {
    const PackedMatrix shape{nullptr, static_cast<DType>(spec.dtype() - 1), Layout::kColumnMajor,
                             spec.rows(), spec.cols()};
    EXPECT_EQ(data.size(), shape.bytes());
    return Unpacked<Complex>(reinterpret_cast<const std::byte*>(data.data()), shape);
  }

  struct Answer {
    grpc::Status status;
    v1::SolutionHeader header;
    v1::SolveResult result;
    ComplexMatrix x;
  };
  Answer SolveFor(const std::string& handle, const ComplexMatrix& b, DType dtype,
                  v1::Operation operation) {
    grpc::ClientContext context;
    auto stream = stub().Solve(&context);
    v1::SolveRequest request;
    request.mutable_header()->set_handle(handle);
    *request.mutable_header()->mutable_rhs() = Spec(kN, 1, dtype);
    request.mutable_header()->mutable_options()->set_operation(operation);
    request.set_data(Data(b, kN, 1, dtype));
    stream->Write(request);
    stream->WritesDone();
    Answer answer;
    std::string data;
    v1::SolveResponse response;
    while (stream->Read(&response)) {
      data += response.data();
      if (response.has_header()) answer.header = response.header();
      if (response.has_result()) answer.result = response.result();
    }
    answer.status = stream->Finish();
    if (answer.status.ok()) answer.x = Values(data, answer.header.solution());
    return answer;
  }

  grpc::Status FactorizeAs(const ComplexMatrix& a, DType dtype, v1::Factor* factor) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Spec(kN, kN, dtype);
    header.mutable_options()->set_condition(true);
    header.mutable_options()->set_determinant(true);
    return Factorize(header, Data(a, kN, kN, dtype), factor);
  }
};

TEST_F(RpcComplexTest, FactorsSolveInEveryOperationAndForEitherKindOfRightHandSide) {
  StartServer();
  const ComplexMatrix a = RandomComplex(kN, kN, 1);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(a, DType::kComplex128, &factor).ok());
  EXPECT_EQ(factor.factor_dtype(), v1::DTYPE_COMPLEX128);
  EXPECT_EQ(factor.matrix_dtype(), v1::DTYPE_COMPLEX128);
  EXPECT_LT(RcondRatio(factor.rcond(), ExactRcond(a, kN)), 30);
  const auto& determinant = factor.determinant();
  EXPECT_NEAR(std::hypot(determinant.sign(), determinant.sign_imaginary()), 1, 1e-15);

  const std::pair<v1::Operation, Op> operations[] = {
      {v1::OPERATION_NONE, Op::kNone},
      {v1::OPERATION_TRANSPOSE, Op::kTranspose},
      {v1::OPERATION_CONJUGATE_TRANSPOSE, Op::kConjugateTranspose}};
  for (const auto& [operation, op] : operations) {
    for (const DType dtype : {DType::kComplex128, DType::kFloat64}) {
      const ComplexMatrix b =
          IsComplex(dtype) ? RandomComplex(kN, 1, 2) : AsComplex(RandomMatrix(kN, 1, 2));
      const Answer answer = SolveFor(factor.handle(), b, dtype, operation);
      ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
      EXPECT_EQ(answer.header.solution().dtype(), v1::DTYPE_COMPLEX128);
      EXPECT_LT(SolveRatio(a, kN, op, answer.x, b, 1, DType::kComplex128), 30);
      EXPECT_LT(answer.result.backward_error(), kN * 0x1p-53);
    }
  }
  EXPECT_THAT(core().metrics.Scrape(), HasSubstr("dtype=\"c128\""));
}

TEST_F(RpcComplexTest, ARealFactorSolvesForComplexRightHandSides) {
  StartServer();
  const ComplexMatrix a = AsComplex(RandomMatrix(kN, kN, 3));
  const ComplexMatrix b = RandomComplex(kN, 1, 4);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(a, DType::kFloat64, &factor).ok());
  EXPECT_EQ(factor.determinant().sign_imaginary(), 0);
  const std::pair<v1::Operation, Op> operations[] = {
      {v1::OPERATION_NONE, Op::kNone}, {v1::OPERATION_CONJUGATE_TRANSPOSE, Op::kTranspose}};
  for (const auto& [operation, op] : operations) {
    const Answer answer = SolveFor(factor.handle(), b, DType::kComplex128, operation);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    EXPECT_EQ(answer.header.solution().dtype(), v1::DTYPE_COMPLEX128);
    EXPECT_LT(SolveRatio(a, kN, op, answer.x, b, 1, DType::kComplex128), 30);
  }
  ExpectHeldSoon(Idle());
}

TEST_F(RpcComplexTest, FactorizeAndSolveConvertsARealRightHandSideToComplex) {
  StartServer();
  const ComplexMatrix a = RandomComplex(kN, kN, 5);
  const ComplexMatrix b = AsComplex(RandomMatrix(kN, 1, 6));
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Spec(kN, kN, DType::kComplex64);
  *header.mutable_rhs() = Spec(kN, 1, DType::kFloat32);
  const ComplexMatrix rounded = Rounded(a, DType::kComplex64);
  const ComplexMatrix rhs = Rounded(b, DType::kFloat32);
  const SolvedAtOnce solved = FactorizeAndSolve(header, Data(a, kN, kN, DType::kComplex64),
                                                Data(b, kN, 1, DType::kFloat32));
  ASSERT_TRUE(solved.status.ok()) << solved.status.error_message();
  EXPECT_EQ(solved.header.solution().dtype(), v1::DTYPE_COMPLEX64);
  const ComplexMatrix x = Values(solved.data, solved.header.solution());
  EXPECT_LT(SolveRatio(rounded, kN, Op::kNone, x, rhs, 1, DType::kComplex64), 30);
  ExpectHeldSoon(Idle());
}

TEST_F(RpcComplexTest, ADeviceWithoutComplexTypesRefusesThem) {
  FakeDeviceOptions real;
  real.types = kRealTypes;
  StartServer(real);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(AsComplex(RandomMatrix(kN, kN, 7)), DType::kFloat64, &factor).ok());
  const grpc::Status solve =
      SolveFor(factor.handle(), RandomComplex(kN, 1, 8), DType::kComplex128, v1::OPERATION_NONE)
          .status;
  EXPECT_EQ(solve.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(solve.error_message(), HasSubstr("device cuda:0 does not support c128"));
  const grpc::Status factorize = FactorizeAs(RandomComplex(kN, kN, 9), DType::kComplex128, &factor);
  EXPECT_EQ(factorize.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(factorize.error_message(), HasSubstr("device cuda:0 does not support c128"));
  ExpectHeldSoon(Idle());
}

TEST_F(RpcComplexTest, DevicesListTheirTypes) {
  FakeDeviceOptions real;
  real.types = kRealTypes;
  FakeDeviceOptions all;
  all.name = "cuda:1";
  StartServers({real, all}, SmallConfig());
  grpc::ClientContext context;
  v1::GetServerInfoResponse info;
  ASSERT_TRUE(stub().GetServerInfo(&context, {}, &info).ok());
  EXPECT_THAT(info.devices(0).types(),
              ::testing::ElementsAre(v1::DTYPE_FLOAT32, v1::DTYPE_FLOAT64));
  EXPECT_EQ(info.devices(1).types_size(), 4);
}

TEST_F(RpcComplexTest, ComplexMatricesRunOnTheDeviceThatSupportsThem) {
  FakeDeviceOptions real;
  real.types = kRealTypes;
  FakeDeviceOptions all;
  all.name = "cuda:1";
  all.slowness = 1000;
  StartServers({real, all}, SmallConfig());
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(RandomComplex(kN, kN, 10), DType::kComplex128, &factor).ok());
  EXPECT_EQ(factor.device(), "cuda:1");
}

// A well-conditioned sparse Hermitian matrix of order kN.
ComplexMatrix SparseHermitian() {
  ComplexMatrix a = RandomComplex(kN, kN, 11);
  for (int64_t j = 0; j < kN; ++j) {
    for (int64_t i = 0; i < j; ++i) {
      if ((i + j) % 7 != 0) a[j + i * kN] = 0;
      a[i + j * kN] = std::conj(a[j + i * kN]);
    }
    a[j + j * kN] = 5 + a[j + j * kN].real();
  }
  return a;
}

std::string LowerTriangleText(const ComplexMatrix& a) {
  std::string lines;
  int count = 0;
  for (int64_t i = 0; i < kN; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      const Complex v = a[i + j * kN];
      if (v == 0.0) continue;
      absl::StrAppendFormat(&lines, "%d %d %.17g %.17g\n", i + 1, j + 1, v.real(), v.imag());
      ++count;
    }
  }
  return absl::StrCat("%%MatrixMarket matrix coordinate complex hermitian\n", kN, " ", kN, " ",
                      count, "\n", lines);
}

std::string ArrayText(const ComplexMatrix& b) {
  std::string text =
      absl::StrCat("%%MatrixMarket matrix array complex general\n", b.size(), " 1\n");
  for (const Complex v : b) absl::StrAppendFormat(&text, "%.17g %.17g\n", v.real(), v.imag());
  return text;
}

// The parameter selects whether the device stores coordinate texts as sparse matrices.
class RpcComplexTextTest : public RpcComplexTest, public ::testing::WithParamInterface<bool> {
 protected:
  void Start() {
    FakeDeviceOptions options;
    options.has_sparse_ops = GetParam();
    StartServer(options);
  }
  grpc::Status FactorizeText(const std::string& text, DType dtype, v1::Factor* factor) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Text(Wire(dtype));
    return Factorize(header, text, factor);
  }
};

TEST_P(RpcComplexTextTest, ComplexTextsAreFactored) {
  Start();
  const ComplexMatrix a = SparseHermitian();
  const ComplexMatrix b = RandomComplex(kN, 1, 12);
  for (const DType dtype : {DType::kComplex128, DType::kComplex64}) {
    v1::Factor factor;
    const grpc::Status status = FactorizeText(LowerTriangleText(a), dtype, &factor);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(factor.matrix_dtype(), Wire(dtype));
    EXPECT_EQ(factor.nnz(), std::count_if(a.begin(), a.end(), [](Complex v) { return v != 0.0; }));
    const ComplexMatrix rounded = Rounded(a, dtype);
    for (const auto& [operation, op] :
         {std::pair(v1::OPERATION_NONE, Op::kNone),
          std::pair(v1::OPERATION_TRANSPOSE, Op::kTranspose),
          std::pair(v1::OPERATION_CONJUGATE_TRANSPOSE, Op::kConjugateTranspose)}) {
      const Answer answer = SolveFor(factor.handle(), b, dtype, operation);
      ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
      EXPECT_LT(SolveRatio(rounded, kN, op, answer.x, Rounded(b, dtype), 1, dtype), 30);
      EXPECT_LT(answer.result.backward_error(), kN * UnitRoundoff(dtype));
    }
  }
}

TEST_P(RpcComplexTextTest, RealTextsBecomeComplexAndRightHandSidesAreTextsToo) {
  Start();
  const ComplexMatrix b = RandomComplex(kN, 1, 13);
  std::string diagonal = absl::StrCat("%%MatrixMarket matrix coordinate integer general\n", kN, " ",
                                      kN, " ", kN, "\n");
  for (int64_t i = 1; i <= kN; ++i) absl::StrAppend(&diagonal, i, " ", i, " 2\n");
  v1::FactorizeAndSolveHeader header;
  *header.mutable_matrix() = Text(v1::DTYPE_COMPLEX128);
  *header.mutable_rhs() = Text(v1::DTYPE_COMPLEX128);
  const SolvedAtOnce solved = FactorizeAndSolve(header, diagonal, ArrayText(b));
  ASSERT_TRUE(solved.status.ok()) << solved.status.error_message();
  const ComplexMatrix x = Values(solved.data, solved.header.solution());
  for (int64_t i = 0; i < kN; ++i) EXPECT_EQ(x[i], b[i] / 2.0);
}

TEST_P(RpcComplexTextTest, AnEmptyColumnIsFoundAndImaginaryEntriesAreEntries) {
  Start();
  v1::Factor factor;
  const std::string banner = "%%MatrixMarket matrix coordinate complex general\n3 3 3\n";
  ASSERT_TRUE(
      FactorizeText(banner + "1 1 0 3\n2 3 4 3\n3 2 0 0\n", DType::kComplex128, &factor).ok());
  EXPECT_EQ(factor.singular_reason(), v1::SINGULAR_REASON_EMPTY_ROW);
  EXPECT_EQ(factor.empty_index(), 3);
  EXPECT_EQ(factor.norm_one(), 5);
}

TEST_P(RpcComplexTextTest, ValuesBeyondTheTypeAreRefused) {
  Start();
  const struct {
    const char* value;
    DType dtype;
    const char* message;
  } cases[] = {
      {"1 1e40", DType::kComplex64, "row 0, column 0 (0-based) overflows c64"},
      {"-1e40 0", DType::kComplex64, "row 0, column 0 (0-based) overflows c64"},
      {"1 1e40", DType::kFloat64, "line 1: the matrix is complex; the requested type is real"},
      {"1 0", DType::kFloat32, "line 1: the matrix is complex; the requested type is real"},
  };
  for (const auto& c : cases) {
    for (const char* form :
         {"coordinate complex general\n1 1 1\n1 1 ", "array complex general\n1 1\n"}) {
      v1::Factor factor;
      const grpc::Status status = FactorizeText(
          absl::StrCat("%%MatrixMarket matrix ", form, c.value, "\n"), c.dtype, &factor);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
      EXPECT_THAT(status.error_message(), HasSubstr(c.message));
    }
  }
  ExpectHeldSoon(Idle());
}

INSTANTIATE_TEST_SUITE_P(Devices, RpcComplexTextTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "WithSparseOperations" : "Dense";
});

TEST_F(RpcComplexTest, MatrixAndFactorAreOfOneField) {
  StartServer();
  v1::FactorizeHeader header;
  *header.mutable_matrix() = Spec(kN, kN, DType::kComplex128);
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT64);
  v1::Factor factor;
  const grpc::Status status = Factorize(header, "", &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("c128 cannot have a factor in f64"));
}

}  // namespace
}  // namespace crout::testing::complex_test
