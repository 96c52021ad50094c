// SPDX-License-Identifier: Apache-2.0

// Updates of single entries of a matrix.
#ifndef CROUT_KERNELS_HOST_OPS_ENTRIES_H_
#define CROUT_KERNELS_HOST_OPS_ENTRIES_H_

#include "kernels/matrix_ops.h"

namespace crout::host {

// Implements MatrixOps::SetEntries. If an entry has several values, the last one remains.
EntryStats SetEntries(const EntryList& entries, const AnyMatrix& a);

// Implements MatrixOps::SumValues.
ValueStats SumValues(int cores, const ValueMap& map, DType dtype, const std::byte* values,
                     std::byte* out);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_ENTRIES_H_
