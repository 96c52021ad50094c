// SPDX-License-Identifier: Apache-2.0

// Compares Schur complements of the service with the vendor's routines for the same steps.
#include <algorithm>
#include <cmath>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/schur.h"
#include "tests/bench/harness/bench_result.h"
#include "tests/bench/harness/gpu_bench.h"

namespace crout {
namespace {

constexpr int kSchurWarmUps = 1;
constexpr int kSchurRounds = 5;
constexpr DType kType = DType::kFloat64;

bool Never() { return false; }

// A matrix and leading order, with the vendor's steps and our job.
class SchurCase {
 public:
  SchurCase(ExecutionContext& context, int64_t n, int64_t leading)
      : context_(context), n_(n), k_(leading), out_(n * n * sizeof(double)) {
    std::mt19937_64 generator(n);
    std::vector<double> host(n * n);
    for (double& v : host) v = std::ldexp(static_cast<double>(generator() >> 11), -52) - 1;
    matrix_ = Allocate(bytes());
    Check(context.ops().CopyToDevice(host.data(), matrix_.data(), bytes()));
    Check(context.Synchronize());
    const Device& device = context.device();
    options_.factor.algorithm = Check(FindAlgorithm(device, "getrf", kType, k_));
    options_.solver = Check(FindSolver(device, "trsm", UnitDiagonal::kL, kType, k_, n - k_));
    options_.leading = k_;
    ipiv_ = Allocate(k_ * sizeof(int64_t));
    workspace_ = Allocate(std::max(Check(options_.factor.algorithm->WorkspaceBytes(kType, k_, {})),
                                   Check(options_.solver->WorkspaceBytes(kType, k_, n - k_))));
  }

  // Returns the seconds of getrf of A11, trsm with A12 and gemm on blocks of a copy of A. They
  // overwrite the copy with S, without checks and statistics.
  double TimeVendor() {
    const Buffer a = Copy();
    const std::span<std::byte> work(workspace_.data(), workspace_.size());
    const AnyMatrix a11 = Block(a, 0, 0, k_, k_);
    const AnyMatrix a12 = Block(a, 0, k_, k_, n_ - k_);
    auto* ipiv = ipiv_.as<int64_t>();
    return Time([&] {
      Check(options_.factor.algorithm->Factor(context_, a11, ipiv, work, {}, Never));
      Check(
          options_.solver->Solve(context_, {a11, ipiv, UnitDiagonal::kL}, Op::kNone, 0, a12, work));
      Check(context_.ops().Multiply(-1, Op::kNone, Block(a, k_, 0, n_ - k_, k_), a12, 1,
                                    Block(a, k_, k_, n_ - k_, n_ - k_)));
      Check(context_.Synchronize());
    });
  }

  KernelTimings TimeOurs() {
    Buffer upload = Copy();
    KernelTimings timings;
    const SchurResult result = Check(ComputeSchurComplement(
        context_, std::move(upload), {nullptr, kType, Layout::kColumnMajor, n_, n_}, options_,
        out_.data(), Never, timings));
    if (result.factor.summary.info != 0)
      Check(absl::InternalError("the leading block is singular"));
    return timings;
  }

 private:
  size_t bytes() const { return n_ * n_ * sizeof(double); }
  Buffer Allocate(size_t size) { return Check(context_.device().memory().Allocate(size)); }
  Buffer Copy() {
    Buffer copy = Allocate(bytes());
    Check(context_.ops().CopyOnDevice(matrix_.data(), copy.data(), bytes()));
    Check(context_.Synchronize());
    return copy;
  }
  AnyMatrix Block(const Buffer& a, int64_t row, int64_t col, int64_t rows, int64_t cols) const {
    return {a.data() + (row + col * n_) * sizeof(double), kType, rows, cols, n_};
  }

  ExecutionContext& context_;
  const int64_t n_;
  const int64_t k_;
  std::vector<std::byte> out_;
  Buffer matrix_;
  SchurOptions options_;
  Buffer ipiv_;
  Buffer workspace_;
};

}  // namespace

nlohmann::ordered_json BenchSchur(ExecutionContext& context, int64_t n, int64_t leading) {
  SchurCase schur(context, n, leading);
  std::vector<double> vendor, factor, solve, ours, to_host;
  for (int round = -kSchurWarmUps; round < kSchurRounds; ++round) {
    const double theirs = schur.TimeVendor();
    const KernelTimings timings = schur.TimeOurs();
    if (round < 0) continue;
    vendor.push_back(theirs);
    factor.push_back(timings.factor);
    solve.push_back(timings.solve);
    ours.push_back(timings.factor + timings.solve);
    to_host.push_back(timings.device_to_host);
  }
  return {{"n", n},
          {"leading", leading},
          {"getrf_trsm_gemm_ms", 1e3 * Median(vendor)},
          {"schur_ms", 1e3 * Median(ours)},
          {"schur_ratio", Median(ours) / Median(vendor)},
          {"factor_ms", 1e3 * Median(factor)},
          {"solve_and_product_ms", 1e3 * Median(solve)},
          {"to_host_ms", 1e3 * Median(to_host)}};
}

}  // namespace crout
