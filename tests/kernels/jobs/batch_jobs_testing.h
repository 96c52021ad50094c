// SPDX-License-Identifier: Apache-2.0

// Factors irregular batches and solves with them as jobs, with host data as input and output.
#ifndef CROUT_TESTS_KERNELS_JOBS_BATCH_JOBS_TESTING_H_
#define CROUT_TESTS_KERNELS_JOBS_BATCH_JOBS_TESTING_H_

#include <algorithm>
#include <cstddef>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "kernels/jobs/batch/batch_factorize.h"
#include "kernels/jobs/batch/batch_payload.h"
#include "kernels/jobs/batch/batch_solve.h"
#include "kernels/util/status_macros.h"
#include "tests/kernels/irregular_batch_testing.h"
#include "tests/support/memory/counting_resource.h"
#include "tests/support/runners/job_runner.h"

namespace crout::testing {

// Returns `members` as a block in the wire format: `pairs`, which are shapes or pairs of a member
// and a number of right-hand sides, then the elements. Sets `extent` to the extent of the members.
template <class T>
std::vector<std::byte> Block(const std::vector<MatrixShape>& pairs,
                             const std::vector<Member<T>>& members, BatchExtent* extent) {
  HostBatch<T> batch(members);
  *extent = batch.extent();
  std::vector<std::byte> block(BatchValuesOffset(std::ssize(pairs)) + extent->bytes);
  const std::span<const std::byte> numbers = std::as_bytes(std::span(pairs));
  std::copy_n(batch.view().data, extent->bytes,
              std::copy(numbers.begin(), numbers.end(), block.begin()));
  return block;
}

template <class T>
std::vector<MatrixShape> ShapesOf(const std::vector<Member<T>>& members) {
  std::vector<MatrixShape> shapes;
  for (const Member<T>& member : members) shapes.push_back({member.rows, member.cols});
  return shapes;
}

template <class T>
struct Rhs {
  int64_t member = 0;  // index of the factored member
  Member<T> b;         // order x number of right-hand sides
};

struct FactoredBatch {
  Factorization factorization;
  std::vector<std::byte> figure_bytes;
  BatchFigures figures{nullptr, 0};  // a view of figure_bytes
};

// The vectors have one element per right-hand side of the request.
template <class T>
struct SolvedBatch {
  std::vector<Member<T>> x;
  std::vector<double> errors;
  std::vector<int32_t> info;
  BatchSolveSummary summary;
};

// Runs jobs on a device, which must outlive this object. Functions return the errors of the jobs.
// Used by one thread at a time.
class BatchJobs {
 public:
  // If `memory`, the device's memory, is given, expects that jobs stay within their plans.
  BatchJobs(Device& device, const BatchLu* method, CountingResource* memory = nullptr)
      : memory_(memory), runner_(device), options_{method, true} {}

  BatchFactorizeOptions& options() { return options_; }
  // Sets the extent that Factor declares in place of the true one.
  void Declare(const BatchExtent& extent) { declared_ = extent; }

  template <class T>
  absl::StatusOr<FactoredBatch> Factor(const std::vector<Member<T>>& members,
                                       StopRequested stop = JobRunner::NeverStop()) {
    BatchExtent extent;
    const std::vector<std::byte> block = Block(ShapesOf(members), members, &extent);
    CROUT_ASSIGN_OR_RETURN(const BatchFactorizePlan plan,
                           PlanBatchFactorize(options_, declared_.value_or(extent)));
    const size_t before = Start();
    CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_.Upload(block));
    FactoredBatch result;
    result.figure_bytes.resize(BatchFigures::kBytesPerMember * members.size());
    result.figures = BatchFigures(result.figure_bytes.data(), std::ssize(members));
    CROUT_ASSIGN_OR_RETURN(result.factorization,
                           FactorizeBatch(runner_.context(), plan, std::move(upload),
                                          result.figure_bytes.data(), stop, timings_));
    const size_t kept = members.empty() ? 0 : plan.bytes.kept;
    EXPECT_EQ(result.factorization.parts.bytes(), kept);
    ExpectWithin(before, plan.bytes.peak, kept);
    return result;
  }

  template <class T>
  absl::StatusOr<SolvedBatch<T>> Solve(const FactoredBatch& factor,
                                       const std::vector<Rhs<T>>& systems, Op op = Op::kNone,
                                       bool verify = true) {
    std::vector<MatrixShape> pairs;
    std::vector<Member<T>> members;
    for (const auto& [member, b] : systems) {
      pairs.push_back({member, b.cols});
      members.push_back(b);
    }
    BatchExtent extent;
    const std::vector<std::byte> block = Block(pairs, members, &extent);
    const Factorization& factorization = factor.factorization;
    CROUT_ASSIGN_OR_RETURN(
        const BatchSolvePlan plan,
        PlanBatchSolve({options_.method, op, verify}, factorization.summary,
                       factorization.has_matrix(), {std::ssize(systems), extent.bytes}));
    const size_t before = Start();
    CROUT_ASSIGN_OR_RETURN(Buffer upload, runner_.Upload(block));
    std::vector<std::byte> x(extent.bytes);
    std::vector<std::byte> figures(plan.figures_bytes);
    SolvedBatch<T> solved;
    CROUT_ASSIGN_OR_RETURN(solved.summary,
                           SolveBatch(runner_.context(), plan, factorization, std::move(upload),
                                      x.data(), figures.data(), JobRunner::NeverStop(), timings_));
    ExpectWithin(before, plan.bytes.peak, /*kept=*/0);
    std::vector<BatchMember> places(members.size());
    EXPECT_OK(PackMembers(kDTypeOf<T>, ShapesOf(members), places));
    const BatchSolveFigures reported(figures.data(), std::ssize(systems));
    for (size_t k = 0; k < systems.size(); ++k) {
      Member<T> member = systems[k].b;
      const std::span<std::byte> elements = std::as_writable_bytes(std::span(member.elements));
      std::copy_n(x.begin() + places[k].offset * static_cast<int64_t>(sizeof(T)), elements.size(),
                  elements.begin());
      solved.x.push_back(std::move(member));
      solved.errors.push_back(reported.backward_error[k]);
      solved.info.push_back(reported.info[k]);
    }
    return solved;
  }

 private:
  size_t Start() {
    if (memory_ == nullptr) return 0;
    memory_->ResetPeak();
    return memory_->live_bytes();
  }
  void ExpectWithin(size_t before, size_t peak, size_t kept) {
    if (memory_ == nullptr) return;
    EXPECT_LE(memory_->peak_bytes() - before, peak);
    EXPECT_EQ(memory_->live_bytes(), before + kept);
    EXPECT_EQ(memory_->freed_in_use(), 0);
  }

  CountingResource* const memory_;
  JobRunner runner_;
  KernelTimings timings_;
  BatchFactorizeOptions options_;
  std::optional<BatchExtent> declared_;
};

// Returns random square members of a few orders, including 0.
template <class T>
std::vector<Member<T>> MixedMembers() {
  std::vector<Member<T>> members;
  for (const int64_t n : {5, 1, 0, 70, 3, 64, 2, 33}) {
    members.push_back(RandomMember<T>(n, n, members.size()));
  }
  return members;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_KERNELS_JOBS_BATCH_JOBS_TESTING_H_
