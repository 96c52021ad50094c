// The bits of what a device computes: one line for each matrix, type, storage order, method and
// solver, with digests of L and U, of the row interchanges, of the scales and of X. Two versions
// that print the same lines on one machine compute the same; digests of different processors, or
// numbers of cores, cannot be compared.
//
//   crout-digest [--device=cuda:0] [--matrices=DIR] [--max-n=500]

#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "kernels/algorithm_registry.h"
#include "kernels/factorization.h"
#include "kernels/host/device/openmp_environment.h"
#include "kernels/jobs/direct_solve.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "tests/bench/bench_result.h"
#include "tests/bench/crout_bench/families.h"
#include "tests/bench/crout_bench/open_device.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/workbench.h"

namespace crout::bench {
namespace {

constexpr int64_t kColumns[] = {1, 3};  // of right-hand sides
constexpr double kStep = 1e-4;          // relative change to the matrix of a warm start

bool Never() { return false; }

// FNV-1a, 64 bits.
std::string Digest(const void* data, size_t bytes) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < bytes; ++i) {
    hash = (hash ^ static_cast<const uint8_t*>(data)[i]) * 0x100000001b3;
  }
  return absl::StrFormat("%016x", hash);
}
std::string DigestOf(const std::vector<std::byte>& bytes) {
  return Digest(bytes.data(), bytes.size());
}

// The digests of one matrix on one device in one type and storage order.
class Digests {
 public:
  Digests(ExecutionContext& context, const Problem& problem, DType dtype, Layout layout)
      : context_(context),
        matrix_{nullptr, dtype, layout, problem.n, problem.n},
        values_(problem.values),
        name_(absl::StrCat(problem.name, " ", ToAbsl(NameOf(dtype)), " ",
                           layout == Layout::kColumnMajor ? "columns" : "rows")) {}

  void Print() {
    for (const auto& algorithm : context_.device().algorithms()) Print(*algorithm);
    for (const auto& solver : context_.device().direct_solvers()) Print(*solver);
  }

 private:
  template <class Result>
  void Line(std::string_view what, const absl::StatusOr<Result>& result) const {
    std::cout << name_ << " " << what << " "
              << (result.ok() ? *result : absl::StatusCodeToString(result.status().code())) << "\n";
  }

  void Print(const LuAlgorithm& algorithm) {
    const auto factor = Factor(algorithm, values_, std::nullopt);
    Print(algorithm.traits().name, factor);
    if (!algorithm.traits().iterative || !factor.ok() || factor->summary.info != 0) return;
    std::vector<double> next = values_;
    Perturb(kStep, 1, next);
    Print(absl::StrCat(ToAbsl(algorithm.traits().name), "-warm"),
          Factor(algorithm, next, factor->view()));
  }

  void Print(std::string_view method, const absl::StatusOr<Factorization>& factor) {
    if (!factor.ok()) return Line<std::string>(method, factor.status());
    Line(method, FactorDigests(*factor));
    if (factor->summary.info != 0) return;
    for (const auto& solver : context_.device().solvers()) {
      if (!solver->Supports(factor->summary.unit_diagonal)) continue;
      for (const Op op : {Op::kNone, Op::kTranspose}) {
        for (const int64_t nrhs : kColumns) {
          for (const int refine : {0, 2}) {
            Line(absl::StrCat(ToAbsl(method), " ", ToAbsl(solver->name()),
                              op == Op::kNone ? "" : "-transposed", " nrhs=", nrhs,
                              " refine=", refine),
                 SolutionDigest(*factor, *solver, op, nrhs, refine));
          }
        }
      }
    }
  }

  void Print(const DirectSolver& solver) {
    for (const int64_t nrhs : kColumns) {
      Line(absl::StrCat(ToAbsl(solver.name()), " nrhs=", nrhs), DirectDigest(solver, nrhs));
    }
  }

  absl::StatusOr<Buffer> Upload(const std::vector<double>& values) {
    const std::vector<std::byte> bytes = Packed(matrix_.dtype, values);
    CROUT_ASSIGN_OR_RETURN(Buffer upload, context_.device().memory().Allocate(bytes.size()));
    CROUT_RETURN_IF_ERROR(context_.ops().CopyToDevice(bytes.data(), upload.data(), bytes.size()));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    return upload;
  }

  absl::StatusOr<Factorization> Factor(const LuAlgorithm& algorithm,
                                       const std::vector<double>& values,
                                       std::optional<FactorView> start) {
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(values));
    FactorizeOptions options;
    options.algorithm = &algorithm;
    options.parameters.start = start;
    options.factor_dtype = matrix_.dtype;
    options.prepare =
        FindSolverToPrepare(context_.device(), algorithm.traits().unit_diagonal, matrix_.dtype);
    KernelTimings timings;
    return Factorize(context_, std::move(upload), matrix_, options, Never, timings);
  }

  absl::StatusOr<std::string> BufferDigest(const Buffer& buffer) {
    std::vector<std::byte> bytes(buffer.size());
    CROUT_RETURN_IF_ERROR(context_.ops().CopyToHost(buffer.data(), bytes.data(), bytes.size()));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    return DigestOf(bytes);
  }

  absl::StatusOr<std::string> FactorDigests(const Factorization& factor) {
    std::vector<std::string> digests;
    for (const Buffer* part : {&factor.lu(), &factor.ipiv(), &factor.scales(), &factor.matrix()}) {
      CROUT_ASSIGN_OR_RETURN(std::string digest, BufferDigest(*part));
      digests.push_back(std::move(digest));
    }
    const FactorSummary& summary = factor.summary;
    const double told[] = {static_cast<double>(summary.info), summary.pivot_growth,
                           summary.quality.value_or(0), summary.norm_one, summary.norm_inf};
    digests.push_back(Digest(told, sizeof(told)));
    return absl::StrJoin(digests, " ");
  }

  // Entries uniform in [-1, 1), the same in every storage order.
  std::vector<std::byte> RightHandSides(int64_t nrhs) const {
    std::vector<double> values = Check(Generate("random", std::max(matrix_.rows, nrhs)));
    values.resize(matrix_.rows * nrhs);
    return Packed(matrix_.dtype, values);
  }
  PackedMatrix RhsShape(int64_t nrhs) const {
    return {nullptr, matrix_.dtype, matrix_.layout, matrix_.rows, nrhs};
  }
  absl::StatusOr<Buffer> UploadRightHandSides(int64_t nrhs) {
    return Upload(Unpacked(matrix_.dtype, RightHandSides(nrhs)));
  }

  absl::StatusOr<std::string> SolutionDigest(const Factorization& factor,
                                             const TriangularSolver& solver, Op op, int64_t nrhs,
                                             int refine) {
    CROUT_ASSIGN_OR_RETURN(Buffer upload, UploadRightHandSides(nrhs));
    SolveOptions options;
    options.solver = &solver;
    options.op = op;
    options.max_refinement_steps = refine;
    std::vector<std::byte> x(RhsShape(nrhs).bytes());
    KernelTimings timings;
    CROUT_ASSIGN_OR_RETURN(const SolveSummary summary,
                           Solve(context_, factor, std::move(upload), RhsShape(nrhs), options,
                                 x.data(), Never, timings));
    return absl::StrCat(DigestOf(x), " ", Digest(&*summary.backward_error, sizeof(double)));
  }

  absl::StatusOr<std::string> DirectDigest(const DirectSolver& solver, int64_t nrhs) {
    CROUT_ASSIGN_OR_RETURN(Buffer matrix, Upload(values_));
    CROUT_ASSIGN_OR_RETURN(Buffer rhs, UploadRightHandSides(nrhs));
    DirectSolveOptions options;
    options.solver = &solver;
    options.dtype = matrix_.dtype;
    std::vector<std::byte> x(RhsShape(nrhs).bytes());
    KernelTimings timings;
    CROUT_ASSIGN_OR_RETURN(const DirectSolveSummary summary,
                           SolveDirectly(context_, std::move(matrix), matrix_, std::move(rhs),
                                         RhsShape(nrhs), options, x.data(), Never, timings));
    if (summary.info != 0) return absl::StrCat("info=", summary.info);
    return absl::StrCat(DigestOf(x), " ", Digest(&*summary.backward_error, sizeof(double)));
  }

  ExecutionContext& context_;
  const PackedMatrix matrix_;
  const std::vector<double>& values_;
  const std::string name_;
};

int Main(int argc, char** argv) {
  CLI::App app("Prints digests of what every method and solver of a device computes");
  Options options;
  options.max_n = 700;
  options.generate = {{"random", {1, 2, 3, 8, 33, 64, 130, 300, 700}},
                      {"dominant", {64, 300, 700}},
                      {"thesis", {64, 300, 700}}};
  app.add_option("--device", options.device, "host or cuda:N");
  app.add_option("--matrices", options.matrices, "Directory of Matrix Market files, plain or gzip")
      ->check(CLI::ExistingDirectory);
  app.add_option("--max-n", options.max_n, "Files of larger order are left out");
  CLI11_PARSE(app, argc, argv);
  const std::unique_ptr<Device> device = Check(OpenDevice(options.device));
  const std::unique_ptr<ExecutionContext> context = Check(device->CreateContext());
  for (const ProblemSource& source : Check(ListProblems(options))) {
    const absl::StatusOr<Problem> problem = source.load();
    if (!problem.ok()) continue;  // not square, or larger than asked for
    for (const DType dtype : {DType::kFloat64, DType::kFloat32}) {
      for (const Layout layout : {Layout::kColumnMajor, Layout::kRowMajor}) {
        Digests(*context, *problem, dtype, layout).Print();
      }
    }
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace
}  // namespace crout::bench

int main(int argc, char** argv) {
  crout::host::UsePassiveOpenMpWaits(argv);  // as croutd does
  return crout::bench::Main(argc, argv);
}
