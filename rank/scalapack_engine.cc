// SPDX-License-Identifier: Apache-2.0

#include "rank/scalapack_engine.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "rank/layout.h"
#include "rank/scalapack.h"
#include "rank/shared_memory.h"

namespace crout::rank {
namespace {

// This rank's blocks of a matrix, in its part of the workspace.
template <class T>
class LocalBlocks {
 public:
  LocalBlocks(const GridContext& grid, int64_t rows, int64_t cols, std::span<std::byte>* workspace)
      : grid_(grid),
        rows_(Local(rows, grid.row(), grid.rows())),
        cols_(Local(cols, grid.col(), grid.cols())),
        ld_(std::max(1, rows_)) {
    const int64_t part = LocalBytes(grid.grid(), rows, cols, sizeof(T));
    const auto all = static_cast<uint64_t>(part) * grid.ranks();
    if (workspace->size() < all) Refuse("the workspace is too small");
    if (static_cast<int64_t>(ld_) * cols_ > kMostLocalElements) Refuse("the matrix is too large");
    data_ = reinterpret_cast<T*>(workspace->data() + part * grid.rank());
    *workspace = workspace->subspan(all);
    const int m = static_cast<int>(rows);
    const int n = static_cast<int>(cols);
    const int block = kBlock;
    const int zero = 0;
    const int context = grid.context();
    int info = 0;
    descinit_(descriptor_, &m, &n, &block, &block, &zero, &zero, &context, &ld_, &info);
    if (info != 0) Refuse("descinit refused argument " + std::to_string(-info));
  }

  T* data() const { return data_; }
  const int* descriptor() const { return descriptor_; }
  int rows() const { return rows_; }

  // Returns the global index of a local row.
  int64_t GlobalRow(int64_t local) const { return Global(local, grid_.row(), grid_.rows()); }

  void CopyFrom(const SharedMatrix<T>& from) const {
    ForEachRun(from, [](T* local, T* shared, int64_t count) { Copy(shared, local, count); });
  }
  void CopyTo(const SharedMatrix<T>& to) const {
    ForEachRun(to, [](T* local, T* shared, int64_t count) { Copy(local, shared, count); });
  }

 private:
  static int Local(int64_t count, int process, int processes) {
    const int n = static_cast<int>(count);
    const int block = kBlock;
    const int zero = 0;
    return numroc_(&n, &block, &process, &zero, &processes);
  }
  static int64_t Global(int64_t local, int process, int processes) {
    return (local / kBlock * processes + process) * kBlock + local % kBlock;
  }
  static void Copy(const T* from, T* to, int64_t count) {
    std::memcpy(to, from, count * sizeof(T));
  }

  // Calls f(local elements, shared elements, count) for each run of rows of each local column.
  template <class F>
  void ForEachRun(const SharedMatrix<T>& shared, F f) const {
    for (int64_t j = 0; j < cols_; ++j) {
      T* const column = shared.data + Global(j, grid_.col(), grid_.cols()) * shared.ld;
      for (int64_t i = 0; i < rows_; i += kBlock) {
        f(data_ + j * ld_ + i, column + GlobalRow(i), std::min(kBlock, rows_ - i));
      }
    }
  }

  const GridContext& grid_;
  const int rows_;
  const int cols_;
  const int ld_;
  T* data_ = nullptr;
  int descriptor_[9] = {};
};

template <class T>
int64_t RunFactor(const GridContext& grid, std::span<std::byte> memory, const v1::Factor& job) {
  const SharedMatrix<T> a(memory, job.a());
  if (a.rows != a.cols) Refuse("the matrix is not square");
  int64_t* const ipiv = ArrayAt<int64_t>(memory, job.ipiv(), a.rows);
  std::span<std::byte> workspace = At(memory, job.workspace());
  const LocalBlocks<T> local(grid, a.rows, a.cols, &workspace);
  std::vector<int> pivots(local.rows() + kBlock);
  local.CopyFrom(a);
  int info = 0;
  Getrf(static_cast<int>(a.rows), local.data(), local.descriptor(), pivots.data(), &info);
  grid.FinishSends();
  if (info < 0) Refuse("pXgetrf refused argument " + std::to_string(-info));
  // A rank writes only its own blocks, which no other rank reads.
  local.CopyTo(a);
  if (grid.col() == 0) {
    for (int64_t i = 0; i < local.rows(); ++i) ipiv[local.GlobalRow(i)] = pivots[i];
  }
  return info;
}

char LetterOf(v1::Op op) {
  switch (op) {
    case v1::OP_NONE:
      return 'N';
    case v1::OP_TRANSPOSE:
      return 'T';
    case v1::OP_CONJUGATE_TRANSPOSE:
      return 'C';
    default:
      Refuse("unknown op " + std::to_string(op));
  }
}

template <class T>
void RunSolve(const GridContext& grid, std::span<std::byte> memory, const v1::Solve& job) {
  const SharedMatrix<T> lu(memory, job.lu());
  const SharedMatrix<T> b(memory, job.b());
  if (lu.rows != lu.cols || b.rows != lu.rows) Refuse("the shapes of factor and columns differ");
  if (job.b().dtype() != job.lu().dtype()) Refuse("the types of factor and columns differ");
  const char op = LetterOf(job.op());
  const int64_t* const ipiv = ArrayAt<int64_t>(memory, job.ipiv(), lu.rows);
  std::span<std::byte> workspace = At(memory, job.workspace());
  const LocalBlocks<T> local(grid, lu.rows, lu.cols, &workspace);
  const LocalBlocks<T> columns(grid, b.rows, b.cols, &workspace);
  std::vector<int> pivots(local.rows() + kBlock);
  for (int64_t i = 0; i < local.rows(); ++i) pivots[i] = static_cast<int>(ipiv[local.GlobalRow(i)]);
  local.CopyFrom(lu);
  columns.CopyFrom(b);
  int info = 0;
  Getrs(op, static_cast<int>(lu.rows), static_cast<int>(b.cols), local.data(), local.descriptor(),
        pivots.data(), columns.data(), columns.descriptor(), &info);
  grid.FinishSends();
  if (info != 0) Refuse("pXgetrs refused argument " + std::to_string(-info));
  columns.CopyTo(b);
}

class ScalapackEngine final : public Engine {
 public:
  explicit ScalapackEngine(const GridContext& grid) : grid_(grid) {}

  std::string method() const override { return "scalapack"; }
  bool Accepts(const v1::Job& job) const override { return job.has_factor() || job.has_solve(); }

  void Run(std::span<std::byte> memory, const v1::Job& job, v1::Result* result) override {
    if (job.has_factor()) {
      result->set_info(DispatchType(job.factor().a().dtype(), [&]<class T>(ElementType<T>) {
        return RunFactor<T>(grid_, memory, job.factor());
      }));
    } else {
      DispatchType(job.solve().lu().dtype(),
                   [&]<class T>(ElementType<T>) { RunSolve<T>(grid_, memory, job.solve()); });
    }
  }

 private:
  const GridContext& grid_;
};

}  // namespace

std::unique_ptr<Engine> MakeScalapackEngine(const GridContext& grid) {
  return std::make_unique<ScalapackEngine>(grid);
}

}  // namespace crout::rank
