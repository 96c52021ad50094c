// SPDX-License-Identifier: Apache-2.0

// Element-wise copies between types, layouts and scales.
#ifndef CROUT_KERNELS_HOST_OPS_CONVERT_H_
#define CROUT_KERNELS_HOST_OPS_CONVERT_H_

#include "kernels/matrix.h"
#include "kernels/sparse_view.h"

namespace crout::host {

// `cores` is as for ParallelFor in all functions.

// Unpacks `in` into the column-major `out`, with conversion of types. If `in` is complex and `out`
// real, `out` has twice as many columns: first all real parts, then all imaginary parts.
void Unpack(int cores, const PackedMatrix& in, const AnyMatrix& out);

// Packs the column-major `in` into `out`, with the type and order of `layout`. If `in` is real and
// the packed matrix complex, `in` has the real parts and then the imaginary parts as above, or only
// real parts, and the imaginary parts are 0.
void Pack(int cores, const AnyMatrix& in, const PackedMatrix& layout, std::byte* out);

// out := diag(row) in diag(col). Implements MatrixOps::CopyScaled.
void ScaleInto(int cores, const AnyMatrix& in, const double* row, const double* col,
               const AnyMatrix& out);

// The same for a sparse `in`: fills the dense `out`, with the bits its dense form would give.
void ScaleInto(int cores, const AnySparse& in, const double* row, const double* col,
               const AnyMatrix& out);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_CONVERT_H_
