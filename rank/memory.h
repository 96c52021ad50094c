// SPDX-License-Identifier: Apache-2.0

// Checked access to the memory of a group's jobs.
#ifndef CROUT_RANK_MEMORY_H_
#define CROUT_RANK_MEMORY_H_

#include <complex>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "crout/rank/v1/rank_service.pb.h"
#include "rank/grid_context.h"
#include "rank/layout.h"

namespace crout::rank {

// Ends the job with this error.
[[noreturn]] inline void Refuse(const std::string& what) { throw std::invalid_argument(what); }

// The daemon's memory in which the matrices of jobs lie. The rank maps it, or has a copy of the
// parts that it needs. The functions after Check() require a part that Check() has accepted, and do
// not throw. Not thread-safe.
class GroupMemory {
 public:
  virtual ~GroupMemory() = default;

  // Throws std::invalid_argument if the part is not inside the memory or has invalid fields.
  virtual void Check(const v1::Part& part) const = 0;

  // Copies the elements of a part to or from contiguous memory.
  virtual void Read(const v1::Part& part, void* to) = 0;
  virtual void Write(const v1::Part& part, const void* from) = 0;

  // Returns the elements of a whole matrix, in their order in memory with the gaps between columns.
  // Store() makes changes visible to the daemon. Both are for one rank of a job. Valid until End().
  virtual void* Load(const v1::Part& whole) = 0;
  virtual void Store(const v1::Part& whole) = 0;

  // Returns `bytes` bytes for the blocks of this rank, until End(): those at `offset` in the
  // workspace of the job if it is shared. Throws if the workspace is smaller.
  virtual void* Blocks(const v1::Range& workspace, uint64_t offset, uint64_t bytes) = 0;

  // Call these before and after each job.
  virtual void Begin(uint64_t /*job*/) {}
  virtual void End() {}
};

// Describes an array of `count` elements. Refuses a range that is shorter.
inline v1::Part ArrayPart(const v1::Range& range, int64_t element_bytes, int64_t count) {
  if (count < 1 || range.bytes() / element_bytes < static_cast<uint64_t>(count)) {
    Refuse("an array of " + std::to_string(count) + " elements is longer than its range");
  }
  v1::Part part;
  *part.mutable_range() = range;
  part.set_element_bytes(element_bytes);
  part.set_rows(count);
  part.set_cols(1);
  part.set_ld(count);
  part.set_grid_rows(1);
  part.set_grid_cols(1);
  part.set_block(kBlock);
  return part;
}

// Describes a column-major matrix with elements of this size. Refuses shapes that the libraries
// cannot index.
inline v1::Part MatrixPart(const v1::Matrix& matrix, int64_t element_bytes) {
  if (matrix.rows() < 1 || matrix.cols() < 1 || matrix.ld() < matrix.rows() ||
      matrix.ld() > INT32_MAX || matrix.cols() > INT32_MAX) {
    Refuse("a matrix has " + std::to_string(matrix.rows()) + " rows, " +
           std::to_string(matrix.cols()) + " columns and the leading dimension " +
           std::to_string(matrix.ld()));
  }
  v1::Part part;
  *part.mutable_range() = matrix.range();
  part.set_element_bytes(element_bytes);
  part.set_rows(matrix.rows());
  part.set_cols(matrix.cols());
  part.set_ld(matrix.ld());
  part.set_grid_rows(1);
  part.set_grid_cols(1);
  part.set_block(kBlock);
  return part;
}

// Describes the pivots of this rank's rows of a matrix of order n, which has square blocks of order
// `block`.
inline v1::Part PivotPart(const GridContext& grid, const v1::Range& ipiv, int64_t n,
                          int64_t block) {
  v1::Part part = ArrayPart(ipiv, sizeof(int64_t), n);
  part.set_grid_rows(grid.rows());
  part.set_grid_row(grid.row());
  part.set_block(static_cast<int32_t>(block));
  return part;
}

template <class T>
struct ElementType {
  using type = T;
};

// Returns f(ElementType<T>()) for the C++ type of `dtype`.
template <class F>
decltype(auto) DispatchType(v1::Dtype dtype, F&& f) {
  switch (dtype) {
    case v1::DTYPE_F32:
      return f(ElementType<float>());
    case v1::DTYPE_F64:
      return f(ElementType<double>());
    case v1::DTYPE_C64:
      return f(ElementType<std::complex<float>>());
    case v1::DTYPE_C128:
      return f(ElementType<std::complex<double>>());
    default:
      Refuse("unknown element type " + std::to_string(dtype));
  }
}

}  // namespace crout::rank

#endif  // CROUT_RANK_MEMORY_H_
