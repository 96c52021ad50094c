// SPDX-License-Identifier: Apache-2.0

// Tests downloads of L and U of sparse factors, for each method that supports them.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/sparse/sparse_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::sparse_download_test {
namespace {

using ::testing::HasSubstr;

struct Download {
  grpc::Status status;
  v1::GetFactorsHeader header;
  std::string data;
};

class RpcSparseDownloadTest : public RpcSparseTest,
                              public ::testing::WithParamInterface<v1::Algorithm> {
 protected:
  RpcSparseDownloadTest() : RpcSparseTest({GetParam()}) {}

  Download Get(const std::string& handle, bool take_sparse = true) {
    grpc::ClientContext context;
    v1::GetFactorsRequest request;
    request.set_handle(handle);
    request.set_take_sparse(take_sparse);
    const auto stream = stub().GetFactors(&context, request);
    Download download;
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
      if (response.has_header()) download.header = response.header();
      download.data += response.data();
    }
    download.status = stream->Finish();
    return download;
  }
};

// Reads numbers from a string of bytes, from its begin.
class DownloadReader {
 public:
  explicit DownloadReader(const std::string& bytes) : bytes_(bytes) {}
  template <class T>
  std::vector<T> Take(int64_t count) {
    std::vector<T> values(count);
    const size_t size = count * sizeof(T);
    EXPECT_LE(at_ + size, bytes_.size());
    if (at_ + size <= bytes_.size()) std::memcpy(values.data(), bytes_.data() + at_, size);
    at_ += size;
    return values;
  }
  bool AtEnd() const { return at_ == bytes_.size(); }

 private:
  const std::string& bytes_;
  size_t at_ = 0;
};

// Reads a matrix in compressed rows. Returns it as a dense row-major matrix.
template <class T>
std::vector<double> TakeRows(DownloadReader& reader, const v1::SparseSpec& spec) {
  const int64_t n = spec.rows();
  EXPECT_EQ(spec.format(), v1::SPARSE_FORMAT_COMPRESSED_ROWS);
  EXPECT_EQ(spec.index_bytes(), 4);
  EXPECT_EQ(spec.cols(), n);
  const std::vector<int32_t> starts = reader.Take<int32_t>(n + 1);
  const std::vector<int32_t> columns = reader.Take<int32_t>(spec.entries());
  const std::vector<T> values = reader.Take<T>(spec.entries());
  std::vector<double> full(n * n);
  EXPECT_EQ(starts.back(), spec.entries());
  for (int64_t i = 0; i < n; ++i) {
    for (int32_t e = starts[i]; e < starts[i + 1]; ++e) {
      EXPECT_TRUE(e == starts[i] || columns[e - 1] < columns[e]);
      full[i * n + columns[e]] = values[e];
    }
  }
  return full;
}

// Returns the largest |(L U - diag(r)[p] A[p, q] diag(c)[q])(i, j)|.
template <class T>
double Difference(const Download& download, int64_t n, const Triplets& a) {
  const v1::SparseFactors& sparse = download.header.sparse();
  DownloadReader reader(download.data);
  std::vector<double> lower = TakeRows<T>(reader, sparse.lower());
  const std::vector<double> upper = TakeRows<T>(reader, sparse.upper());
  const std::vector<int32_t> p = reader.Take<int32_t>(n), q = reader.Take<int32_t>(n);
  std::vector<double> r(n, 1.0), c(n, 1.0);
  if (sparse.scaled()) {
    r = reader.Take<double>(n);
    c = reader.Take<double>(n);
  }
  EXPECT_TRUE(reader.AtEnd());
  std::vector<double> full(n * n), product(n * n);
  for (const Triplet& entry : a) full[entry.row * n + entry.column] += entry.value;
  double largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    EXPECT_EQ(lower[i * n + i], 0) << "the unit diagonal is not stored";
    lower[i * n + i] = 1;
    for (int64_t k = 0; k <= i; ++k) {
      for (int64_t j = k; j < n; ++j) product[i * n + j] += lower[i * n + k] * upper[k * n + j];
    }
    for (int64_t j = 0; j < n; ++j) {
      const double of_a = r[p[i]] * full[p[i] * n + q[j]] * c[q[j]];
      largest = std::max(largest, std::abs(product[i * n + j] - of_a));
    }
  }
  return largest;
}

TEST_P(RpcSparseDownloadTest, ReturnsLAndUOfTheMatrix) {
  Start();
  constexpr int64_t kM = 12;
  const Triplets grid = Grid(kM);
  for (const v1::Equilibrate mode : {v1::EQUILIBRATE_OFF, v1::EQUILIBRATE_ON}) {
    v1::FactorizeHeader header = Header(kM * kM, grid);
    header.mutable_options()->set_equilibrate(mode);
    const Download download = Get(MustFactor(header, grid).handle());
    ASSERT_TRUE(download.status.ok()) << download.status.error_message();
    EXPECT_EQ(download.header.sparse().scaled(), mode == v1::EQUILIBRATE_ON);
    EXPECT_EQ(
        download.header.sparse().lower().entries() + download.header.sparse().upper().entries(),
        download.header.factor().sparse().lu_entries());
    EXPECT_LT(Difference<double>(download, kM * kM, grid), 1e-13);
    EXPECT_GT(Difference<double>(download, kM * kM, Grid(kM, 1)), 1e-5);
  }
}

TEST_P(RpcSparseDownloadTest, WithInterchangesAndPostponedPivots) {
  Start();
  const Triplets a = Star(0);
  v1::FactorizeHeader header = Header(kStar, a);
  header.mutable_options()->set_equilibrate(v1::EQUILIBRATE_OFF);
  const v1::Factor factor = MustFactor(header, a);
  EXPECT_EQ(factor.sparse().postponements() > 0, GetParam() == v1::ALGORITHM_MULTIFRONTAL);
  EXPECT_LT(Difference<double>(Get(factor.handle()), kStar, a), 1e-12);
  if (GetParam() == v1::ALGORITHM_KLU) return;  // supports only float64
  header.mutable_options()->set_factor_dtype(v1::DTYPE_FLOAT32);
  EXPECT_LT(Difference<float>(Get(MustFactor(header, a).handle()), kStar, a), 1e-3);
}

TEST_P(RpcSparseDownloadTest, WorksFromHostMemoryAndLeavesNothing) {
  Start();
  constexpr int64_t kM = 12;
  const Triplets a = Grid(kM);
  const v1::Factor factor = MustFactor(Header(kM * kM, a), a);
  const Download before = Get(factor.handle());
  Idle();
  DeviceSlot& slot = *core().engine.devices.slots()[0];
  {
    ASSERT_OK_AND_ASSIGN(const Reservation all,
                         core().engine.cache.ReserveOnDevice(slot, slot.budget->limit()));
  }
  const Holdings held = Idle();
  EXPECT_EQ(held.device_bytes, 0u);
  EXPECT_EQ(Get(factor.handle()).data, before.data);
  ExpectHeldSoon(held);
}

TEST_P(RpcSparseDownloadTest, IsRefusedUnlessTheClientAcceptsSparseFactors) {
  Start();
  const Triplets a = Grid(10);
  const v1::Factor factor = MustFactor(Header(100, a), a);
  const grpc::Status status = Get(factor.handle(), /*take_sparse=*/false).status;
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("take_sparse"));
}

INSTANTIATE_TEST_SUITE_P(Methods, RpcSparseDownloadTest,
                         ::testing::Values(v1::ALGORITHM_MULTIFRONTAL, v1::ALGORITHM_KLU),
                         [](const auto& info) { return AlgorithmName(info.param); });

}  // namespace
}  // namespace crout::testing::sparse_download_test
