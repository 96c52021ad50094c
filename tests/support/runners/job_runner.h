// SPDX-License-Identifier: Apache-2.0

// Runs factorizations and solves of host matrices on any device, as the daemon does.
#ifndef CROUT_TESTS_SUPPORT_RUNNERS_JOB_RUNNER_H_
#define CROUT_TESTS_SUPPORT_RUNNERS_JOB_RUNNER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/factorization.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "tests/support/matrices/gallery.h"

namespace crout::testing {

// Options by name; see FactorizeOptions.
struct FactorRequest {
  std::string algorithm = "getrf";
  DType matrix_dtype = DType::kFloat64;
  DType factor_dtype = DType::kFloat64;
  Layout layout = Layout::kColumnMajor;
  EquilibrateMode equilibrate = EquilibrateMode::kOff;
  bool keep_matrix = true;
  bool sparse = false;  // uploads A as a sparse matrix; needs a device with SparseOps
  bool condition = false;
  bool determinant = false;
  LuParameters parameters;
};

// Options by name; see SolveOptions.
struct SolveRequest {
  std::string solver = "auto";
  DType dtype = DType::kFloat64;
  Layout layout = Layout::kColumnMajor;
  Op op = Op::kNone;
  bool verify = true;
  bool componentwise_error = false;
  bool error_bound = false;
  int max_refinement_steps = 0;
  bool refine_componentwise = false;
};

struct Solution {
  HostMatrix x;  // n x nrhs
  SolveSummary summary;
};

struct ComplexSolution {
  ComplexMatrix x;                   // n x nrhs
  DType dtype = DType::kComplex128;  // type of the returned solution
  SolveSummary summary;
};

// The parts of a dense factor of order n in host memory.
struct HostFactor {
  HostMatrix lu;               // n x n
  std::vector<int64_t> ipiv;   // n elements, 1-based
  std::vector<double> scales;  // n row scales, then n column scales; empty without scaling
};

// Returns the 1-based index of the first zero on the diagonal of a factor of order n, or 0.
int64_t FirstZeroPivot(const HostFactor& factor, int64_t n);

// Runs jobs on one context of a device, which must outlive this object. Matrices to factor are
// n x n; right-hand sides are n x nrhs. Functions return the errors of the device and of the jobs.
// Used by one thread at a time.
class JobRunner {
 public:
  explicit JobRunner(Device& device);

  ExecutionContext& context() { return *context_; }
  KernelTimings& timings() { return timings_; }

  // Copies `bytes` to device memory with an uploader of the device. Later work on the context waits
  // for the copy, but this function does not.
  absl::StatusOr<Buffer> Upload(const std::vector<std::byte>& bytes);

  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n, const FactorRequest& request,
                                       StopRequested stop = NeverStop());
  absl::StatusOr<Solution> Solve(const Factorization& factor, const HostMatrix& b, int64_t nrhs,
                                 const SolveRequest& request, StopRequested stop = NeverStop());
  // These overloads take complete options and pack the matrix densely in `dtype` and `layout`.
  absl::StatusOr<Factorization> Factor(const HostMatrix& a, int64_t n, DType dtype, Layout layout,
                                       const FactorizeOptions& options,
                                       StopRequested stop = NeverStop());
  absl::StatusOr<Solution> Solve(const Factorization& factor, const HostMatrix& b, int64_t nrhs,
                                 DType dtype, Layout layout, const SolveOptions& options,
                                 StopRequested stop = NeverStop());
  // Requires a dense factor of a real type.
  absl::StatusOr<HostFactor> Download(const Factorization& factor);

  // For dense complex matrices. Elements must be real if the type of the request is real.
  absl::StatusOr<Factorization> FactorComplex(const ComplexMatrix& a, int64_t n,
                                              const FactorRequest& request,
                                              StopRequested stop = NeverStop());
  absl::StatusOr<ComplexSolution> SolveComplex(const Factorization& factor, const ComplexMatrix& b,
                                               int64_t nrhs, const SolveRequest& request);

  // Return UNIMPLEMENTED if the device has no such method.
  absl::StatusOr<FactorizeOptions> Options(const FactorRequest& request, int64_t n) const;
  absl::StatusOr<SolveOptions> Options(const SolveRequest& request, const FactorSummary& factor,
                                       int64_t nrhs) const;

  static StopRequested NeverStop();

 private:
  Device& device_;
  std::unique_ptr<ExecutionContext> context_;
  KernelTimings timings_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_RUNNERS_JOB_RUNNER_H_
