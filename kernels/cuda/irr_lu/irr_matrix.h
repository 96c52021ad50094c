// Operands of the operations on irregular batches, as the paper has them (irregular_batch.h): the
// members' sizes stay with the members, operations are on submatrices that begin at the same
// element of every member and are as large as the largest operation, and what there is to do for a
// member follows from both. Nobody does arithmetic on arrays of pointers and sizes.
#ifndef CROUT_KERNELS_CUDA_IRR_LU_IRR_MATRIX_H_
#define CROUT_KERNELS_CUDA_IRR_LU_IRR_MATRIX_H_

#include <cstdint>

#include "kernels/batch_member.h"
#include "kernels/matrix.h"

namespace crout::cuda {

// The submatrices from element (row, col) on of a batch's members. In device memory.
template <class T>
struct IrrMatrix {
  T* data = nullptr;
  const BatchMember* members = nullptr;
  int row = 0;
  int col = 0;

  IrrMatrix At(int i, int j) const { return {data, members, row + i, col + j}; }

  // Member i's, and at most `rows` x `cols` of it: without rows or columns where it has none. For
  // code that may read `members`; constexpr, so that device code may call it.
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

// The members that an operation is for: order[0, count), indices into the batch, in device memory.
struct IrrMembers {
  const int32_t* order = nullptr;
  int count = 0;
};

// Blocks of threads for parts of `each` of a count above 0, along a grid's second or third
// dimension: no more than that can be. A block takes every so many parts then.
constexpr unsigned BlocksOf(int count, int each) {
  constexpr int kMost = 65535;
  const int parts = (count - 1) / each + 1;
  return static_cast<unsigned>(parts < kMost ? parts : kMost);
}

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_IRR_LU_IRR_MATRIX_H_
