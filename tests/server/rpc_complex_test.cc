// Complex matrices over the wire, and right-hand sides of the other kind than the matrix.
#include <cmath>
#include <complex>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc_fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/gallery.h"
#include "tests/support/ratios.h"

namespace crout::testing {
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

TEST_F(RpcComplexTest, FactorizeAndSolveWidensARealRightHandSide) {
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

TEST_F(RpcComplexTest, ADeviceThatTakesNoComplexNumbersSaysSo) {
  FakeDeviceOptions real;
  real.types = kRealTypes;
  StartServer(real);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeAs(AsComplex(RandomMatrix(kN, kN, 7)), DType::kFloat64, &factor).ok());
  const grpc::Status solve =
      SolveFor(factor.handle(), RandomComplex(kN, 1, 8), DType::kComplex128, v1::OPERATION_NONE)
          .status;
  EXPECT_EQ(solve.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(solve.error_message(), HasSubstr("device cuda:0 does not take c128"));
  const grpc::Status factorize = FactorizeAs(RandomComplex(kN, kN, 9), DType::kComplex128, &factor);
  EXPECT_EQ(factorize.error_code(), grpc::StatusCode::UNIMPLEMENTED);
  EXPECT_THAT(factorize.error_message(), HasSubstr("device cuda:0 does not take c128"));
  ExpectHeldSoon(Idle());
}

TEST_F(RpcComplexTest, DevicesSayWhichTypesTheyTake) {
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

TEST_F(RpcComplexTest, WhereOneDeviceTakesComplexNumbersTheyGoThere) {
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
}  // namespace crout::testing
