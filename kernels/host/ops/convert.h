// Element-wise copies between types, layouts and scales.
#ifndef CROUT_KERNELS_HOST_OPS_CONVERT_H_
#define CROUT_KERNELS_HOST_OPS_CONVERT_H_

#include "kernels/matrix.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// All run on `cores` as ParallelFor does.

// Column-major out := packed in, converted; a real `out` of a complex `in` has twice as many
// columns, first all real parts, then all imaginary ones.
void Unpack(int cores, const PackedMatrix& in, const AnyMatrix& out);

// Packed out := column-major in, converted to layout's type and order; from real to complex as
// above, or, with as many columns, with imaginary parts of 0.
void Pack(int cores, const AnyMatrix& in, const PackedMatrix& layout, std::byte* out);

// out := diag(row) in diag(col), as MatrixOps::CopyScaled.
void ScaleInto(int cores, const AnyMatrix& in, const double* row, const double* col,
               const AnyMatrix& out);

// The same of a sparse matrix: out in full, to the bits that its dense form would give.
void ScaleInto(int cores, const AnySparse& in, const double* row, const double* col,
               const AnyMatrix& out);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_CONVERT_H_
