// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/grid_lu.h"

#include <algorithm>

#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/irr_lu/irr_blas.h"
#include "kernels/cuda/irr_lu/member_team.h"

namespace crout::cuda {
namespace {

template <class T>
class GridLu {
 public:
  GridLu(const IrrLuBatch<T>& batch, const IrrOrder& parts, const int32_t* order,
         cudaStream_t stream)
      : batch_(batch), parts_(parts), order_(order), stream_(stream) {}

  cudaError_t Run() {
    // Rounded up to whole leaves, because a leaf also updates its columns right of the last pivot.
    const int columns = (parts_.grid.diagonal + kLeaf - 1) / kLeaf * kLeaf;
    Factor(0, columns);
    if (columns < parts_.grid.cols) Update(0, columns, parts_.grid.cols);
    return code_;
  }

 private:
  static constexpr int kLeaf = MemberBlocking<T>::kBlock;

  // Factors columns [begin, end) from row `begin` on. Rows are exchanged only in these columns.
  void Factor(int begin, int end) {
    if (end - begin <= kLeaf) {
      Keep(LaunchIrrGetf2(batch_, begin, Reaching(begin), stream_));
      return;
    }
    const int cut = begin + CutOf(end - begin, kLeaf);
    Factor(begin, cut);
    Update(begin, cut, end);
    Factor(cut, end);
    Exchange(cut, end, begin, cut);
  }

  // Updates columns [cut, end) by the factored columns [begin, cut).
  void Update(int begin, int cut, int end) {
    Exchange(begin, cut, cut, end);
    IrrTrsm<T> trsm;
    trsm.m = cut - begin;
    trsm.n = end - cut;
    trsm.t = Constant().At(begin, begin);
    trsm.b = Matrix().At(begin, cut);
    Keep(LaunchIrrTrsm(trsm, Reaching(cut), stream_));
    IrrGemm<T> gemm;
    gemm.m = parts_.grid.rows - cut;
    gemm.n = end - cut;
    gemm.k = cut - begin;
    gemm.alpha = T{-1};
    gemm.a = Constant().At(cut, begin);
    gemm.b = Constant().At(begin, cut);
    gemm.beta = T{1};
    gemm.c = Matrix().At(cut, cut);
    Keep(LaunchIrrGemm(gemm, Reaching(cut), stream_));
  }

  // Applies the interchanges of rows [begin, end) to columns [first, last).
  void Exchange(int begin, int end, int first, int last) {
    IrrLaswp<T> laswp;
    laswp.begin = begin;
    laswp.end = end;
    laswp.n = last - first;
    laswp.ipiv = batch_.ipiv;
    laswp.pivots = batch_.members;
    laswp.a = Matrix().At(0, first);
    Keep(LaunchIrrLaswp(laswp, Reaching(std::max(begin, first)), stream_));
  }

  // The members with more than `columns` rows or columns.
  IrrMembers Reaching(int columns) const {
    const auto& sizes = parts_.grid_sizes;
    const auto end = std::partition_point(sizes.begin(), sizes.end(),
                                          [columns](int32_t size) { return size > columns; });
    return {order_, static_cast<int>(end - sizes.begin())};
  }

  IrrMatrix<T> Matrix() const { return {batch_.data, batch_.members}; }
  IrrMatrix<const T> Constant() const { return {batch_.data, batch_.members}; }
  void Keep(cudaError_t code) {
    if (code_ == cudaSuccess) code_ = code;
  }

  const IrrLuBatch<T>& batch_;
  const IrrOrder& parts_;
  const int32_t* const order_;
  const cudaStream_t stream_;
  cudaError_t code_ = cudaSuccess;  // the first error
};

template <class T>
cudaError_t Exchange(const IrrSolveBatch<T>& batch, bool backward, int columns,
                     const IrrOrder& parts, const IrrMembers& members, cudaStream_t stream) {
  IrrLaswp<T> laswp;
  laswp.backward = backward;
  laswp.end = parts.grid.diagonal;
  laswp.n = columns;
  laswp.ipiv = batch.ipiv;
  laswp.pivots = batch.lu_members;
  laswp.a = {batch.b, batch.b_members};
  return LaunchIrrLaswp(laswp, members, stream);
}

}  // namespace

template <class T>
cudaError_t LaunchGridLu(const IrrLuBatch<T>& batch, const IrrOrder& parts, const int32_t* order,
                         cudaStream_t stream) {
  return GridLu<T>(batch, parts, order, stream).Run();
}

template cudaError_t LaunchGridLu(const IrrLuBatch<float>&, const IrrOrder&, const int32_t*,
                                  cudaStream_t);
template cudaError_t LaunchGridLu(const IrrLuBatch<double>&, const IrrOrder&, const int32_t*,
                                  cudaStream_t);
template cudaError_t LaunchGridLu(const IrrLuBatch<Complex<float>>&, const IrrOrder&,
                                  const int32_t*, cudaStream_t);
template cudaError_t LaunchGridLu(const IrrLuBatch<Complex<double>>&, const IrrOrder&,
                                  const int32_t*, cudaStream_t);

template <class T>
cudaError_t LaunchGridSolve(const IrrSolveBatch<T>& batch, Op op, int columns,
                            const IrrOrder& parts, const int32_t* order, cudaStream_t stream) {
  const IrrMembers members = {order, parts.Count(MemberTeam::kGrid)};
  if (members.count == 0 || columns == 0) return cudaSuccess;
  const bool transposed = op != Op::kNone;
  cudaError_t code = cudaSuccess;
  if (!transposed) code = Exchange(batch, false, columns, parts, members, stream);
  for (const bool lower : {!transposed, transposed}) {
    if (code != cudaSuccess) return code;
    IrrTrsm<T> trsm;
    trsm.op = op;
    trsm.lower = lower;
    trsm.unit = lower;
    trsm.m = parts.grid.diagonal;
    trsm.n = columns;
    trsm.t = {batch.lu, batch.lu_members};
    trsm.b = {batch.b, batch.b_members};
    code = LaunchIrrTrsm(trsm, members, stream);
  }
  if (code == cudaSuccess && transposed) {
    code = Exchange(batch, true, columns, parts, members, stream);
  }
  return code != cudaSuccess ? code : LaunchFillSingular(batch, members, stream);
}

template cudaError_t LaunchGridSolve(const IrrSolveBatch<float>&, Op, int, const IrrOrder&,
                                     const int32_t*, cudaStream_t);
template cudaError_t LaunchGridSolve(const IrrSolveBatch<double>&, Op, int, const IrrOrder&,
                                     const int32_t*, cudaStream_t);
template cudaError_t LaunchGridSolve(const IrrSolveBatch<Complex<float>>&, Op, int, const IrrOrder&,
                                     const int32_t*, cudaStream_t);
template cudaError_t LaunchGridSolve(const IrrSolveBatch<Complex<double>>&, Op, int,
                                     const IrrOrder&, const int32_t*, cudaStream_t);

}  // namespace crout::cuda
