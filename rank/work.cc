// SPDX-License-Identifier: Apache-2.0

#include "rank/work.h"

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "rank/layout.h"
#include "rank/scalapack.h"

namespace crout::rank {
namespace {

[[noreturn]] void Refuse(const std::string& what) { throw std::invalid_argument(what); }

std::span<std::byte> At(std::span<std::byte> memory, const v1::Range& range) {
  if (range.offset() > memory.size() || range.bytes() > memory.size() - range.offset()) {
    Refuse("a range ends outside the shared memory of " + std::to_string(memory.size()) + " bytes");
  }
  return memory.subspan(range.offset(), range.bytes());
}

// A column-major matrix in the shared memory.
template <class T>
struct SharedMatrix {
  SharedMatrix(std::span<std::byte> memory, const v1::Matrix& matrix)
      : rows(matrix.rows()), cols(matrix.cols()), ld(matrix.ld()) {
    if (rows < 1 || cols < 1 || ld < rows || ld > INT32_MAX || cols > INT32_MAX) {
      Refuse("a matrix has " + std::to_string(rows) + " rows, " + std::to_string(cols) +
             " columns and the leading dimension " + std::to_string(ld));
    }
    const std::span<std::byte> bytes = At(memory, matrix.range());
    const auto elements = static_cast<uint64_t>(ld) * (cols - 1) + rows;
    if (bytes.size() / sizeof(T) < elements) Refuse("a matrix is longer than its range");
    data = reinterpret_cast<T*>(bytes.data());
  }

  int64_t rows;
  int64_t cols;
  int64_t ld;
  T* data;
};

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

int64_t* PivotsAt(std::span<std::byte> memory, const v1::Range& range, int64_t n) {
  const std::span<std::byte> bytes = At(memory, range);
  if (bytes.size() < n * sizeof(int64_t)) Refuse("the range of the interchanges is too short");
  return reinterpret_cast<int64_t*>(bytes.data());
}

template <class T>
int64_t RunFactor(const GridContext& grid, std::span<std::byte> memory, const v1::Factor& job) {
  const SharedMatrix<T> a(memory, job.a());
  if (a.rows != a.cols) Refuse("the matrix is not square");
  int64_t* const ipiv = PivotsAt(memory, job.ipiv(), a.rows);
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
int64_t RunSolve(const GridContext& grid, std::span<std::byte> memory, const v1::Solve& job) {
  const SharedMatrix<T> lu(memory, job.lu());
  const SharedMatrix<T> b(memory, job.b());
  if (lu.rows != lu.cols || b.rows != lu.rows) Refuse("the shapes of factor and columns differ");
  if (job.b().dtype() != job.lu().dtype()) Refuse("the types of factor and columns differ");
  const char op = LetterOf(job.op());
  const int64_t* const ipiv = PivotsAt(memory, job.ipiv(), lu.rows);
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
  return 0;
}

template <class T>
int64_t RunTyped(const GridContext& grid, std::span<std::byte> memory, const v1::Job& job) {
  return job.has_factor() ? RunFactor<T>(grid, memory, job.factor())
                          : RunSolve<T>(grid, memory, job.solve());
}

int64_t Dispatch(const GridContext& grid, std::span<std::byte> memory, const v1::Job& job) {
  if (!job.has_factor() && !job.has_solve()) Refuse("the job has no known work");
  const v1::Dtype dtype = job.has_factor() ? job.factor().a().dtype() : job.solve().lu().dtype();
  switch (dtype) {
    case v1::DTYPE_F32:
      return RunTyped<float>(grid, memory, job);
    case v1::DTYPE_F64:
      return RunTyped<double>(grid, memory, job);
    case v1::DTYPE_C64:
      return RunTyped<std::complex<float>>(grid, memory, job);
    case v1::DTYPE_C128:
      return RunTyped<std::complex<double>>(grid, memory, job);
    default:
      Refuse("unknown element type " + std::to_string(dtype));
  }
}

}  // namespace

v1::Result RunJob(const GridContext& grid, std::span<std::byte> memory, const v1::Job& job) {
  v1::Result result;
  result.set_job(job.id());
  try {
    result.set_info(Dispatch(grid, memory, job));
  } catch (const std::invalid_argument& error) {
    result.set_error(error.what());
  }
  return result;
}

}  // namespace crout::rank
