// SPDX-License-Identifier: Apache-2.0

// Prints digests of a device's results: one line for each matrix, type, form, method and solver.
// The forms are column-major, row-major, and entries for matrices that clients send as entries.
// Digests cover L and U, the row interchanges, the scales, the kept matrix and X. Two versions of
// Crout with equal lines on one machine compute equal bits. Digests of different processors or
// numbers of cores are not comparable.
//
//   crout-digest [--device=cuda:0] [--matrices=DIR] [--max-n=500] [--dtype=f64,f32]

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
#include "kernels/io/sparse_block.h"
#include "kernels/jobs/direct_solve.h"
#include "kernels/jobs/factorize.h"
#include "kernels/jobs/solve.h"
#include "kernels/scalar.h"
#include "kernels/sparse_view.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "tests/bench/crout_bench/families.h"
#include "tests/bench/crout_bench/open_device.h"
#include "tests/bench/crout_bench/options.h"
#include "tests/bench/crout_bench/problems.h"
#include "tests/bench/crout_bench/workbench.h"
#include "tests/bench/harness/bench_result.h"

namespace crout::bench {
namespace {

constexpr int64_t kColumns[] = {1, 3};  // numbers of right-hand sides
constexpr double kStep = 1e-4;          // relative change of the matrix before a warm start

bool Never() { return false; }

// Returns the 64-bit FNV-1a hash as text.
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

enum class Form { kColumns, kRows, kEntries };

std::string_view NameOf(Form form) {
  constexpr std::string_view kNames[] = {"columns", "rows", "entries"};
  return kNames[static_cast<int>(form)];
}

std::string_view SuffixOf(Op op) {
  constexpr std::string_view kSuffixes[] = {"", "-transposed", "-conjugate-transposed"};
  return kSuffixes[static_cast<int>(op)];
}

// Returns the nonzero entries of an n x n matrix.
SparseMatrix EntriesOf(const std::vector<double>& values, int64_t n, DType dtype) {
  const int64_t parts = IsComplex(dtype) ? 2 : 1;
  SparseMatrix sparse;
  sparse.rows = sparse.columns = n;
  sparse.column_start = {0};
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      const double* element = values.data() + (i + j * n) * parts;
      if (element[0] == 0 && element[parts - 1] == 0) continue;
      sparse.row.push_back(static_cast<int32_t>(i));
      sparse.value.push_back(element[0]);
      if (parts == 2) sparse.imaginary.push_back(element[1]);
    }
    sparse.column_start.push_back(sparse.nonzeros());
  }
  return sparse;
}

// Packs the entries in the format of SparseLayout.
std::vector<std::byte> PackedEntries(const SparseMatrix& sparse, DType dtype) {
  std::vector<std::byte> bytes(SparseLayout(sparse.rows, sparse.nonzeros(), dtype).bytes);
  Check(WriteSparseBlock(sparse, dtype, bytes.data(), [] { return false; }).status());
  return bytes;
}

// Computes the digests for one matrix, type and form on one device.
class Digests {
 public:
  Digests(ExecutionContext& context, const Problem& problem, DType dtype, Form form)
      : context_(context),
        matrix_{nullptr, dtype, form == Form::kRows ? Layout::kRowMajor : Layout::kColumnMajor,
                problem.n, problem.n},
        form_(form),
        values_(problem.values),
        name_(absl::StrCat(problem.name, " ", ToAbsl(crout::NameOf(dtype)), " ",
                           ToAbsl(NameOf(form)))) {}

  void Print() {
    for (const auto& algorithm : context_.device().algorithms()) {
      if (algorithm->traits().types.contains(matrix_.dtype)) Print(*algorithm);
    }
    if (form_ == Form::kEntries) return;  // direct solvers need the dense form
    for (const auto& solver : context_.device().direct_solvers()) {
      if (solver->traits().types.contains(matrix_.dtype)) Print(*solver);
    }
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
      for (const Op op : {Op::kNone, Op::kTranspose, Op::kConjugateTranspose}) {
        if (op == Op::kConjugateTranspose && !IsComplex(matrix_.dtype)) continue;
        for (const int64_t nrhs : kColumns) {
          for (const int refine : {0, 2}) {
            Line(absl::StrCat(ToAbsl(method), " ", ToAbsl(solver->name()), ToAbsl(SuffixOf(op)),
                              " nrhs=", nrhs, " refine=", refine),
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
    return Upload(Packed(matrix_.dtype, values));
  }
  absl::StatusOr<Buffer> Upload(const std::vector<std::byte>& bytes) {
    CROUT_ASSIGN_OR_RETURN(Buffer upload, context_.device().memory().Allocate(bytes.size()));
    CROUT_RETURN_IF_ERROR(context_.ops().CopyToDevice(bytes.data(), upload.data(), bytes.size()));
    CROUT_RETURN_IF_ERROR(context_.Synchronize());
    return upload;
  }

  absl::StatusOr<Factorization> Factor(const LuAlgorithm& algorithm,
                                       const std::vector<double>& values,
                                       std::optional<FactorView> start) {
    FactorizeOptions options;
    options.algorithm = &algorithm;
    options.parameters.start = start;
    options.factor_dtype = matrix_.dtype;
    options.prepare =
        FindSolverToPrepare(context_.device(), algorithm.traits().unit_diagonal, matrix_.dtype);
    KernelTimings timings;
    if (form_ != Form::kEntries) {
      CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(values));
      return Factorize(context_, std::move(upload), matrix_, options, Never, timings);
    }
    const SparseMatrix sparse = EntriesOf(values, matrix_.rows, matrix_.dtype);
    CROUT_ASSIGN_OR_RETURN(const FactorizePlan plan,
                           PlanFactorize(options, matrix_, sparse.nonzeros()));
    CROUT_ASSIGN_OR_RETURN(Buffer upload, Upload(PackedEntries(sparse, matrix_.dtype)));
    return Factorize(context_, plan, std::move(upload), Never, timings);
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
    const double reported[] = {static_cast<double>(summary.info), summary.pivot_growth,
                               summary.quality.value_or(0), summary.norm_one, summary.norm_inf};
    digests.push_back(Digest(reported, sizeof(reported)));
    return absl::StrJoin(digests, " ");
  }

  // Returns packed numbers uniform in [-1, 1). They do not depend on the storage order.
  std::vector<std::byte> RightHandSides(int64_t nrhs) const {
    const bool complex = IsComplex(matrix_.dtype);
    std::vector<double> values = Check(Generate("random", std::max(matrix_.rows, nrhs), complex));
    values.resize(matrix_.rows * nrhs * (complex ? 2 : 1));
    return Packed(matrix_.dtype, values);
  }
  PackedMatrix RhsShape(int64_t nrhs) const {
    return {nullptr, matrix_.dtype, matrix_.layout, matrix_.rows, nrhs};
  }
  absl::StatusOr<Buffer> UploadRightHandSides(int64_t nrhs) { return Upload(RightHandSides(nrhs)); }

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
  const Form form_;
  const std::vector<double>& values_;
  const std::string name_;
};

void PrintAll(ExecutionContext& context, const Problem& problem, const std::vector<DType>& dtypes) {
  for (const DType dtype : dtypes) {
    if (IsComplex(dtype) != problem.complex) continue;
    for (const Form form : {Form::kColumns, Form::kRows}) {
      Digests(context, problem, dtype, form).Print();
    }
    if (ArrivesSparse(context.device(), problem.n, problem.nonzeros, dtype)) {
      Digests(context, problem, dtype, Form::kEntries).Print();
    }
  }
}

int Main(int argc, char** argv) {
  CLI::App app("Prints digests of what every method and solver of a device computes");
  Options options;
  options.max_n = 700;
  options.dtypes = {DType::kFloat64, DType::kFloat32, DType::kComplex128, DType::kComplex64};
  options.generate = {{"random", {1, 2, 3, 8, 33, 64, 130, 300, 700}},
                      {"dominant", {64, 300, 700}},
                      {"thesis", {64, 300, 700}}};
  app.add_option("--device", options.device, "host or cuda:N");
  app.add_option("--matrices", options.matrices, "Directory of Matrix Market files, plain or gzip")
      ->check(CLI::ExistingDirectory);
  app.add_option("--max-n", options.max_n, "Files of larger order are left out");
  AddTypes(app, options);
  CLI11_PARSE(app, argc, argv);
  const std::unique_ptr<Device> device = Check(OpenDevice(options.device));
  const std::unique_ptr<ExecutionContext> context = Check(device->CreateContext());
  for (const ProblemSource& source : Check(ListProblems(options))) {
    for (const bool complex : {false, true}) {
      const absl::StatusOr<Problem> problem = source.load(complex);
      if (!problem.ok()) continue;  // not square, larger than --max-n, or complex
      PrintAll(*context, *problem, options.dtypes);
    }
  }
  std::cout << std::flush;
  return 0;
}

}  // namespace
}  // namespace crout::bench

int main(int argc, char** argv) {
  crout::host::UsePassiveOpenMpWaits(argv);  // same waits as croutd
  return crout::bench::Main(argc, argv);
}
