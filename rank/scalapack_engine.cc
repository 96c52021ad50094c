// SPDX-License-Identifier: Apache-2.0

#include "rank/scalapack_engine.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "rank/layout.h"
#include "rank/memory.h"
#include "rank/scalapack.h"

namespace crout::rank {
namespace {

// This rank's blocks of a matrix.
template <class T>
class LocalBlocks {
 public:
  // The blocks of all ranks follow each other in the workspace, from `*used` on.
  LocalBlocks(const GridContext& grid, GroupMemory& memory, const v1::Matrix& matrix,
              const v1::Range& workspace, uint64_t* used)
      : memory_(memory),
        part_(PartOf(grid, matrix)),
        rows_(Local(matrix.rows(), grid.row(), grid.rows())),
        cols_(Local(matrix.cols(), grid.col(), grid.cols())),
        ld_(std::max(1, rows_)) {
    memory.Check(part_);
    if (static_cast<int64_t>(ld_) * cols_ > kMostLocalElements) Refuse("the matrix is too large");
    const int64_t bytes = LocalBytes(grid.grid(), matrix.rows(), matrix.cols(), sizeof(T));
    if (workspace.bytes() < *used + bytes * grid.ranks()) Refuse("the workspace is too small");
    data_ = static_cast<T*>(memory.Blocks(workspace, *used + bytes * grid.rank(), bytes));
    *used += bytes * grid.ranks();
    const int m = static_cast<int>(matrix.rows());
    const int n = static_cast<int>(matrix.cols());
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

  void Read() const { memory_.Read(part_, data_); }
  // A rank writes only its own blocks, which no other rank reads.
  void Write() const { memory_.Write(part_, data_); }

 private:
  static int Local(int64_t count, int process, int processes) {
    const int n = static_cast<int>(count);
    const int block = kBlock;
    const int zero = 0;
    return numroc_(&n, &block, &process, &zero, &processes);
  }
  static v1::Part PartOf(const GridContext& grid, const v1::Matrix& matrix) {
    v1::Part part = MatrixPart(matrix, sizeof(T));
    part.set_grid_rows(grid.rows());
    part.set_grid_cols(grid.cols());
    part.set_grid_row(grid.row());
    part.set_grid_col(grid.col());
    return part;
  }

  GroupMemory& memory_;
  const v1::Part part_;
  const int rows_;
  const int cols_;
  const int ld_;
  T* data_ = nullptr;
  int descriptor_[9] = {};
};

template <class T>
int64_t RunFactor(const GridContext& grid, GroupMemory& memory, const v1::Factor& job) {
  const v1::Matrix& a = job.a();
  if (a.rows() != a.cols()) Refuse("the matrix is not square");
  uint64_t used = 0;
  const LocalBlocks<T> local(grid, memory, a, job.workspace(), &used);
  const v1::Part pivots_part = PivotPart(grid, job.ipiv(), a.rows(), kBlock);
  memory.Check(pivots_part);
  std::vector<int> pivots(local.rows() + kBlock);
  local.Read();
  int info = 0;
  Getrf(static_cast<int>(a.rows()), local.data(), local.descriptor(), pivots.data(), &info);
  grid.FinishSends();
  if (info < 0) Refuse("pXgetrf refused argument " + std::to_string(-info));
  local.Write();
  if (grid.col() == 0) {
    const std::vector<int64_t> ipiv(pivots.begin(), pivots.begin() + local.rows());
    memory.Write(pivots_part, ipiv.data());
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
void RunSolve(const GridContext& grid, GroupMemory& memory, const v1::Solve& job) {
  const v1::Matrix& lu = job.lu();
  const v1::Matrix& b = job.b();
  if (lu.rows() != lu.cols() || b.rows() != lu.rows()) {
    Refuse("the shapes of factor and columns differ");
  }
  if (b.dtype() != lu.dtype()) Refuse("the types of factor and columns differ");
  const char op = LetterOf(job.op());
  uint64_t used = 0;
  const LocalBlocks<T> local(grid, memory, lu, job.workspace(), &used);
  const LocalBlocks<T> columns(grid, memory, b, job.workspace(), &used);
  const v1::Part pivots_part = PivotPart(grid, job.ipiv(), lu.rows(), kBlock);
  memory.Check(pivots_part);
  std::vector<int64_t> ipiv(local.rows());
  memory.Read(pivots_part, ipiv.data());
  std::vector<int> pivots(local.rows() + kBlock);
  std::ranges::transform(ipiv, pivots.begin(), [](int64_t row) { return static_cast<int>(row); });
  local.Read();
  columns.Read();
  int info = 0;
  Getrs(op, static_cast<int>(lu.rows()), static_cast<int>(b.cols()), local.data(),
        local.descriptor(), pivots.data(), columns.data(), columns.descriptor(), &info);
  grid.FinishSends();
  if (info != 0) Refuse("pXgetrs refused argument " + std::to_string(-info));
  columns.Write();
}

class ScalapackEngine final : public Engine {
 public:
  explicit ScalapackEngine(const GridContext& grid) : grid_(grid) {}

  std::string method() const override { return "scalapack"; }
  bool Accepts(const v1::Job& job) const override {
    return (job.has_factor() && !job.factor().on_gpus()) ||
           (job.has_solve() && !job.solve().on_gpus());
  }

  void Run(GroupMemory& memory, const v1::Job& job, v1::Result* result) override {
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
