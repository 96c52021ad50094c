// SPDX-License-Identifier: Apache-2.0

#include "rank/mumps_engine.h"

#include <malloc.h>

#include <cstdint>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "rank/layout.h"
#include "rank/memory.h"
#include "rank/mumps.h"

namespace crout::rank {
namespace {

// A factor that the ranks keep.
class Factor {
 public:
  virtual ~Factor() = default;
  virtual void Solve(const GridContext& grid, GroupMemory& memory, const v1::SparseSolve& job,
                     v1::Result* result) = 0;
};

template <class T>
class TypedFactor final : public Factor {
 public:
  // Throws before MUMPS is called if the job is invalid.
  TypedFactor(const GridContext& grid, GroupMemory& memory, const v1::SparseFactor& job)
      : dtype_(job.dtype()), order_(job.order()), matrix_(memory, job) {
    Configure(job.rank_megabytes());
    if (grid.rank() == 0) Describe(memory);
  }

  // Returns true if the factor is usable.
  bool Make(int megabytes, v1::Result* result) {
    const bool made = Factorize(megabytes, result);
    if (result->info() == 0) {
      result->set_info(mumps_.info(1));
      result->set_detail(mumps_.info(2));
    }
    return made;
  }

  void Solve(const GridContext& grid, GroupMemory& memory, const v1::SparseSolve& job,
             v1::Result* result) override {
    const v1::Part b = MatrixPart(job.b(), sizeof(T));
    memory.Check(b);
    if (b.rows() != order_ || job.b().dtype() != dtype_) {
      Refuse("the shapes or types of factor and columns differ");
    }
    mumps_.Control(9) = job.transposed() ? 0 : 1;
    auto& parameters = mumps_.parameters();
    parameters.nrhs = static_cast<int>(b.cols());
    parameters.lrhs = static_cast<int>(b.ld());
    if (grid.rank() == 0) parameters.rhs = static_cast<Value*>(memory.Load(b));
    mumps_.Run(kMumpsSolve);
    if (grid.rank() == 0) memory.Store(b);
    parameters.rhs = nullptr;
    result->set_info(mumps_.info(1));
    result->set_detail(mumps_.info(2));
  }

 private:
  using Value = typename Mumps<T>::Value;

  // Entries of the matrix.
  struct Matrix {
    Matrix(GroupMemory& memory, const v1::SparseFactor& job)
        : entries(job.entries()),
          rows(ArrayPart(job.rows(), sizeof(int), entries)),
          columns(ArrayPart(job.columns(), sizeof(int), entries)),
          values(ArrayPart(job.values(), sizeof(T), entries)) {
      for (const v1::Part* part : {&rows, &columns, &values}) memory.Check(*part);
      if (job.order() < 1 || job.order() > INT32_MAX || job.rank_megabytes() < 1) {
        Refuse("a sparse matrix has order " + std::to_string(job.order()) + ", " +
               std::to_string(entries) + " entries and " + std::to_string(job.rank_megabytes()) +
               " megabytes");
      }
    }

    int64_t entries;
    v1::Part rows;
    v1::Part columns;
    v1::Part values;
  };

  void Configure(int megabytes) {
    // The caller has permuted, scaled and ordered the matrix.
    mumps_.Control(6) = 0;
    mumps_.Control(7) = 1;
    mumps_.Control(8) = 0;
    mumps_.Control(23) = megabytes;
    mumps_.Control(27) = kSolveColumns;
    mumps_.Control(33) = 1;  // determinant
  }

  void Describe(GroupMemory& memory) {
    order_of_pivots_.resize(order_);
    std::iota(order_of_pivots_.begin(), order_of_pivots_.end(), 1);
    auto& parameters = mumps_.parameters();
    parameters.n = static_cast<int>(order_);
    parameters.nnz = matrix_.entries;
    // Used by Make() only, in the same job.
    parameters.irn = static_cast<int*>(memory.Load(matrix_.rows));
    parameters.jcn = static_cast<int*>(memory.Load(matrix_.columns));
    parameters.a = static_cast<Value*>(memory.Load(matrix_.values));
    parameters.perm_in = order_of_pivots_.data();
  }

  bool Factorize(int megabytes, v1::Result* result) {
    const bool analyzed = mumps_.Run(kMumpsAnalyze);
    mumps_.parameters().perm_in = nullptr;
    order_of_pivots_ = {};
    if (!analyzed) return false;
    v1::SparseFactored& made = *result->mutable_sparse();
    made.set_needed_megabytes(mumps_.info(16));
    if (mumps_.info(16) > megabytes) {
      result->set_info(kMumpsLimitTooSmall);
      return false;
    }
    if (!mumps_.Run(kMumpsFactor)) return false;
    const auto& parameters = mumps_.parameters();
    made.set_entries(mumps_.Count(29));
    made.set_interchanges(mumps_.Count(12));
    made.set_perturbed(mumps_.Count(25) + mumps_.Count(28));
    made.set_determinant_real(parameters.rinfog[11]);
    made.set_determinant_imaginary(parameters.rinfog[12]);
    made.set_determinant_exponent(mumps_.info(34));
    return true;
  }

  const v1::Dtype dtype_;
  const int64_t order_;
  const Matrix matrix_;
  std::vector<int> order_of_pivots_;
  Mumps<T> mumps_;  // after `matrix_`, which may throw
};

class MumpsEngine final : public Engine {
 public:
  explicit MumpsEngine(const GridContext& grid) : grid_(grid) {
    // Large arrays return to the system when they are freed, because the daemon then uses their
    // memory for other jobs. By default glibc raises this limit to 32 MiB.
    constexpr int kLargeBytes = 1 << 20;
    mallopt(M_MMAP_THRESHOLD, kLargeBytes);
  }

  std::string method() const override { return "mumps"; }
  bool Accepts(const v1::Job& job) const override {
    return job.has_sparse_factor() || job.has_sparse_solve();
  }

  void Run(GroupMemory& memory, const v1::Job& job, v1::Result* result) override {
    if (job.has_sparse_factor()) {
      Make(memory, job.sparse_factor(), result);
    } else {
      Solve(memory, job.sparse_solve(), result);
    }
    grid_.FinishSends();
  }

  void Forget(uint64_t factor) override {
    if (factors_.erase(factor) == 0) return;
    grid_.FinishSends();
    malloc_trim(0);  // returns small pieces too
  }

 private:
  void Make(GroupMemory& memory, const v1::SparseFactor& job, v1::Result* result) {
    if (factors_.contains(job.factor())) return;
    DispatchType(job.dtype(), [&]<class T>(ElementType<T>) {
      auto factor = std::make_unique<TypedFactor<T>>(grid_, memory, job);
      if (factor->Make(job.rank_megabytes(), result)) {
        factors_.emplace(job.factor(), std::move(factor));
      }
    });
  }

  void Solve(GroupMemory& memory, const v1::SparseSolve& job, v1::Result* result) {
    const auto found = factors_.find(job.factor());
    if (found == factors_.end()) {
      result->set_no_factor(true);
      return;
    }
    found->second->Solve(grid_, memory, job, result);
  }

  const GridContext& grid_;
  std::map<uint64_t, std::unique_ptr<Factor>> factors_;
};

}  // namespace

const bool kHasMumps = true;

std::unique_ptr<Engine> MakeMumpsEngine(const GridContext& grid) {
  return std::make_unique<MumpsEngine>(grid);
}

}  // namespace crout::rank
