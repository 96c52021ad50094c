// Entries of a matrix that get new values.
#ifndef CROUT_KERNELS_HOST_OPS_ENTRIES_H_
#define CROUT_KERNELS_HOST_OPS_ENTRIES_H_

#include "kernels/matrix_ops.h"

namespace crout::host {

// As MatrixOps::SetEntries; of several values for one entry the last stays.
EntryStats SetEntries(const EntryList& entries, const AnyMatrix& a);

// As MatrixOps::SumValues.
ValueStats SumValues(int cores, const ValueMap& map, DType dtype, const std::byte* values,
                     std::byte* out);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_ENTRIES_H_
