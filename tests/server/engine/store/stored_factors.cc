// SPDX-License-Identifier: Apache-2.0

#include "tests/server/engine/store/stored_factors.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "tests/kernels/jobs/batch_jobs_testing.h"
#include "tests/kernels/jobs/sparse_job_testing.h"
#include "tests/support/matrices/packed_sparse.h"
#include "tests/support/runners/job_runner.h"
#include "tests/support/status_matchers.h"

namespace crout::testing {
namespace {

Device& HostDevice() {
  static Device* const device = host::MakeDevice({.threads = 1}).release();
  return *device;
}

ComplexMatrix WithImaginary(const HostMatrix& a, bool complex) {
  ComplexMatrix b(a.begin(), a.end());
  for (size_t i = 0; complex && i < b.size(); ++i) {
    if (b[i] != 0.0) b[i] += std::complex<double>(0, 0.25);
  }
  return b;
}

StoredSample Stored(std::string label, Factorization factor, ExecutionContext& context) {
  StoredSample sample;
  sample.label = std::move(label);
  FactorRecord& record = sample.record;
  record.handle = Handle::Random();
  record.tenant = "alice";
  record.name = "pressure \"µ\"";
  record.lease = absl::Minutes(90);
  record.create_time = absl::FromUnixMicros(1'790'000'000'123'456);
  record.life_end = absl::InfiniteFuture();
  record.device = "host";
  record.summary = std::move(factor.summary);
  auto copy = CopyToHost(context, factor.parts, SampleMemory());
  EXPECT_OK(copy);
  if (copy.ok()) sample.parts = *std::move(copy);
  return sample;
}

StoredSample Dense(DType dtype, int64_t n, uint64_t seed) {
  JobRunner runner(HostDevice());
  FactorRequest request;
  request.matrix_dtype = request.factor_dtype = dtype;
  request.equilibrate = EquilibrateMode::kOn;
  request.condition = request.determinant = true;
  HostMatrix a = RandomMatrix(n, n, seed);
  for (int64_t i = 0; i < n; ++i) a[i] *= 1e6;  // needs scales
  auto factor = runner.FactorComplex(WithImaginary(a, IsComplex(dtype)), n, request);
  EXPECT_OK(factor);
  return Stored("dense", *std::move(factor), runner.context());
}

StoredSample Sparse(DType dtype) {
  constexpr int64_t kN = 60;
  JobRunner runner(HostDevice());
  const ComplexMatrix a = WithImaginary(RandomSparse(kN, 0.05, 5), IsComplex(dtype));
  const PackedSparse packed = PackSparse(a, kN, dtype);
  AnalysisOptions analyzing;
  analyzing.matching = MatchingMode::kOn;
  auto analysis = Analyze(packed.view(), analyzing, JobRunner::NeverStop());
  EXPECT_OK(analysis);
  SparseFactorizeOptions options;
  options.method = MethodOf(HostDevice(), "multifrontal");
  options.factor_dtype = dtype;
  auto plan = PlanSparseFactorize(options, std::make_shared<const Analysis>(*std::move(analysis)),
                                  false, dtype);
  EXPECT_OK(plan);
  auto upload = Uploaded(runner.context(), packed.view());
  EXPECT_OK(upload);
  GrantingGrowth growth;
  auto factor = FactorizeSparse(runner.context(), *plan, *std::move(upload), JobRunner::NeverStop(),
                                runner.timings(), &growth);
  EXPECT_OK(factor);
  return Stored("sparse", *std::move(factor), runner.context());
}

template <class T>
StoredSample Batch() {
  JobRunner runner(HostDevice());
  BatchJobs jobs(HostDevice(), HostDevice().batch_lu());
  auto factor = jobs.Factor(MixedMembers<T>());
  EXPECT_OK(factor);
  return Stored("batch", std::move(factor->factorization), runner.context());
}

}  // namespace

MemoryResource& SampleMemory() { return HostDevice().memory(); }

std::vector<StoredSample> SampleFactors() {
  std::vector<StoredSample> samples;
  for (const DType dtype : kDTypes) {
    samples.push_back(Dense(dtype, 17, 3));
    samples.push_back(Sparse(dtype));
    DispatchDType(dtype,
                  [&](auto tag) { samples.push_back(Batch<typename decltype(tag)::type>()); });
  }
  return samples;
}

StoredSample DenseSample(int64_t n, uint64_t seed) { return Dense(DType::kFloat64, n, seed); }

bool HaveEqualParts(const FactorParts& a, const FactorParts& b) {
  size_t parts = 0;
  for (const FactorPart& part : a) {
    const Buffer& other = b[part.name];
    if (other.size() != part.buffer.size() ||
        std::memcmp(other.data(), part.buffer.data(), other.size()) != 0) {
      return false;
    }
    ++parts;
  }
  return parts == static_cast<size_t>(b.end() - b.begin());
}

TemporaryFolder::TemporaryFolder() {
  std::string name = ::testing::TempDir() + "crout_store_XXXXXX";
  if (mkdtemp(name.data()) == nullptr) std::abort();
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string ReadBytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace crout::testing
