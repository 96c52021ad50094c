// SPDX-License-Identifier: Apache-2.0

// Memory claims, methods and uploads for the tests of sparse jobs.
#ifndef CROUT_TESTS_KERNELS_JOBS_SPARSE_JOB_TESTING_H_
#define CROUT_TESTS_KERNELS_JOBS_SPARSE_JOB_TESTING_H_

#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "kernels/execution_context.h"
#include "kernels/jobs/sparse/sparse_factorize.h"
#include "kernels/util/status_macros.h"

namespace crout::testing {

// Grants every claim.
class GrantingGrowth final : public SparseGrowth {
 public:
  absl::Status ClaimAnalysis(size_t) override { return absl::OkStatus(); }
  std::shared_ptr<const Analysis> Keep(Analysis analysis) override {
    return std::make_shared<const Analysis>(std::move(analysis));
  }
  absl::Status ClaimJob(const JobBytes& bytes) override {
    claimed.push_back(bytes.kept);
    return absl::OkStatus();
  }

  std::vector<size_t> claimed;  // bytes of each claim for a factor, in order
};

// Refuses the first `refusals` claims for an analysis with RESOURCE_EXHAUSTED and grants all other
// claims.
class RefusingGrowth final : public SparseGrowth {
 public:
  explicit RefusingGrowth(int refusals) : refusals_(refusals) {}

  absl::Status ClaimAnalysis(size_t) override {
    return refusals_-- > 0 ? absl::ResourceExhaustedError("no memory") : absl::OkStatus();
  }
  std::shared_ptr<const Analysis> Keep(Analysis analysis) override {
    return std::make_shared<const Analysis>(std::move(analysis));
  }
  absl::Status ClaimJob(const JobBytes&) override { return absl::OkStatus(); }

 private:
  int refusals_;
};

// Returns the factorization and the solver of this name. Each is null if the device does not have
// it.
inline SparseMethod MethodOf(const Device& device, std::string_view name) {
  SparseMethod method;
  for (const auto& lu : device.catalogue().sparse_lus) {
    if (lu->name() == name) method.lu = lu.get();
  }
  for (const auto& solver : device.catalogue().solvers) {
    if (solver->name() == name) method.solver = solver.get();
  }
  return method;
}

// Copies `a` to the memory of the context's device, in the format that jobs require.
inline absl::StatusOr<Buffer> Uploaded(ExecutionContext& context, const AnySparse& a) {
  CROUT_ASSIGN_OR_RETURN(const size_t bytes, SparseBytes(a.n, a.nonzeros, a.dtype));
  CROUT_ASSIGN_OR_RETURN(Buffer upload, context.device().memory().Allocate(bytes));
  CROUT_RETURN_IF_ERROR(context.ops().CopyToDevice(a.data, upload.data(), bytes));
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  return upload;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_KERNELS_JOBS_SPARSE_JOB_TESTING_H_
