// The arrays that scipy.sparse.save_npz writes.
#ifndef CROUT_CLIENT_CLI_SPARSE_NPZ_H_
#define CROUT_CLIENT_CLI_SPARSE_NPZ_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/byte_input.h"
#include "client/cli/sparse_array.h"

namespace crout::cli {

// Gives the .npy file of the archive's array `name` to `read`, once. INVALID_ARGUMENT where there
// is none, else the status of `read`.
using NpzMember = absl::FunctionRef<absl::Status(const std::string& name,
                                                 absl::FunctionRef<absl::Status(ByteInput*)> read)>;

// A matrix of SciPy's formats csr, csc and coo. INVALID_ARGUMENT for other formats, for arrays
// whose sizes do not agree, for an index beyond the shape, and as ReadNpy for what is in an array.
// Spare capacity behind the last entry of a compressed matrix is left out.
absl::StatusOr<SparseArray> ReadSparse(NpzMember member);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_SPARSE_NPZ_H_
