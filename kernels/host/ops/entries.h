// Entries of a matrix that get new values.
#ifndef CROUT_KERNELS_HOST_OPS_ENTRIES_H_
#define CROUT_KERNELS_HOST_OPS_ENTRIES_H_

#include "kernels/matrix_ops.h"

namespace crout::host {

// As MatrixOps::SetEntries; of several values for one entry the last stays.
EntryStats SetEntries(const EntryList& entries, const AnyMatrix& a);

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_ENTRIES_H_
