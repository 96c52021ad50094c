// SPDX-License-Identifier: Apache-2.0

// Operands of operations on irregular batches, following the interface of the irrLU paper
// (irregular_batch.h). Sizes are stored with the members. An operation names submatrices that begin
// at the same element of every member, with the size of the largest operation; the work for each
// member follows from both. So callers never compute arrays of pointers and sizes.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_MATRIX_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_MATRIX_H_

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The submatrices of a batch's members from element (row, col) on. In device memory.
template <class T>
struct IrrMatrix {
  T* data = nullptr;
  const BatchMember* members = nullptr;
  int row = 0;
  int col = 0;

  IrrMatrix At(int i, int j) const { return {data, members, row + i, col + j}; }

  // Member i's submatrix, at most `rows` x `cols`; without rows or columns if the member has none
  // there. The caller must be able to read `members`. constexpr, so that device code may call it.
  constexpr MatrixView<T> Local(int32_t i, int rows, int cols) const {
    const BatchMember& member = members[i];
    const int64_t first = member.offset + row + static_cast<int64_t>(col) * member.ld;
    return {data + first, Left(member.rows - row, rows), Left(member.cols - col, cols), member.ld};
  }

 private:
  static constexpr int Left(int there, int most) {
    return there < 0 ? 0 : there < most ? there : most;
  }
};

// The members of an operation: order[0, count), indices into the batch, in device memory.
struct IrrMembers {
  const int32_t* order = nullptr;
  int count = 0;
};

// Number of thread blocks for `count` > 0 items, `each` items per block, along a grid's second or
// third dimension. Those dimensions are limited to 65535; beyond that, a block handles several
// parts.
constexpr unsigned BlocksOf(int count, int each) {
  constexpr int kMax = 65535;
  const int parts = (count - 1) / each + 1;
  return static_cast<unsigned>(parts < kMax ? parts : kMax);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_MATRIX_H_
