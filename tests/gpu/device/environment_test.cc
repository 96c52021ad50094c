// SPDX-License-Identifier: Apache-2.0

// Tests that the environment does not change the precision of factors, solutions and residuals. The
// program starts itself again with each environment, because the vendor's libraries read it once
// per process.
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/device/vendor_environment.h"
#include "kernels/jobs/solve.h"
#include "tests/gpu/harness/jobs.h"

namespace crout::environment_test {
namespace {

using ::crout::testing::RandomMatrix;

constexpr char kWorker[] = "CROUT_TEST_WORKER";
constexpr char kDigestMark[] = "digest ";

// The FNV-1a hash.
class Digest {
 public:
  void Add(const void* data, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      hash_ = (hash_ ^ static_cast<const unsigned char*>(data)[i]) * 0x100000001b3;
    }
  }
  uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325;
};

class GpuEnvironmentTest : public GpuTest {};

// Prints a digest of factors, solutions and backward errors in both types. At this order,
// crout_lu's float32 products use TF32, and the residual uses cuBLAS.
TEST_F(GpuEnvironmentTest, PrintsTheDigest) {
  if (getenv(kWorker) == nullptr) GTEST_SKIP() << "run by the test below";  // NOLINT: one thread
  constexpr int64_t kN = 4096;
  Bench gpu(Gpu());
  const HostMatrix a = RandomMatrix(kN, kN, 1);
  const HostMatrix b = RandomMatrix(kN, 20, 2);
  Digest digest;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const char* algorithm : {"getrf", "crout_lu"}) {
      const auto factor =
          gpu.jobs().Factor(a, kN, dtype, Layout::kColumnMajor, OptionsOf(Gpu(), dtype, algorithm));
      ASSERT_TRUE(factor.ok()) << factor.status();
      const auto lu = gpu.Get<std::byte>(factor->lu());
      digest.Add(lu.data(), lu.size());
      for (const char* solver : {"getrs", "trsm"}) {
        SolveOptions options;
        options.solver = SolverOf(Gpu(), solver);
        const auto solved = gpu.jobs().Solve(*factor, b, 20, dtype, Layout::kColumnMajor, options);
        ASSERT_TRUE(solved.ok()) << solved.status();
        digest.Add(solved->x.data(), solved->x.size() * sizeof(double));
        digest.Add(&*solved->summary.backward_error, sizeof(double));
      }
    }
  }
  std::printf("%s%llx\n", kDigestMark, static_cast<unsigned long long>(digest.value()));
}

// Returns the digest line that this program prints with `settings` as environment. If there is
// none, fails the test and returns an empty string.
std::string DigestWith(const std::string& settings) {
  const std::string command =
      absl::StrCat(settings, " ", kWorker, "=1 ", "/proc/", getpid(),
                   "/exe --gtest_filter=GpuEnvironmentTest.PrintsTheDigest 2>&1");
  FILE* output = popen(command.c_str(), "r");
  EXPECT_NE(output, nullptr);
  std::string digest;
  char line[256];
  while (output != nullptr && fgets(line, sizeof(line), output) != nullptr) {
    if (absl::StartsWith(line, kDigestMark)) digest = line;
  }
  if (output != nullptr) {
    EXPECT_EQ(pclose(output), 0) << command;
  }
  EXPECT_FALSE(digest.empty()) << command;
  return digest;
}

TEST_F(GpuEnvironmentTest, GivesTheSameBitsInEveryEnvironment) {
  std::string cleared;
  std::string raised;
  std::string lowered;
  for (const char* name : cuda::kPrecisionVariables) {
    absl::StrAppend(&cleared, "env -u ", name, " ");
    absl::StrAppend(&raised, name, "=1 ");
    absl::StrAppend(&lowered, name, "=0 ");
  }
  const std::string plain = DigestWith(cleared + "env");
  EXPECT_EQ(DigestWith(raised), plain);
  EXPECT_EQ(DigestWith(lowered), plain);  // NVIDIA_TF32_OVERRIDE=0 would forbid TF32 in crout_lu
  EXPECT_EQ(DigestWith("CUBLAS_EMULATE_SINGLE_PRECISION=1 CUBLAS_EMULATE_DOUBLE_PRECISION=1 "
                       "CUBLAS_EMULATION_STRATEGY=eager"),
            plain);
}

}  // namespace
}  // namespace crout::environment_test
