// SPDX-License-Identifier: Apache-2.0

// Reads archives of scipy.sparse.save_npz.
#ifndef CROUT_CLIENT_CLI_FORMATS_SPARSE_NPZ_H_
#define CROUT_CLIENT_CLI_FORMATS_SPARSE_NPZ_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/formats/byte_input.h"
#include "client/cli/formats/sparse_array.h"

namespace crout::cli {

// Passes the .npy file of the archive's array `name` to `read`, once. INVALID_ARGUMENT if there is
// none; otherwise the status of `read`.
using NpzMember = absl::FunctionRef<absl::Status(const std::string& name,
                                                 absl::FunctionRef<absl::Status(ByteInput*)> read)>;

// Reads a matrix in SciPy's formats csr, csc and coo. INVALID_ARGUMENT for other formats, for
// arrays whose sizes disagree, for an index outside the shape, and as from ReadNpy. Spare capacity
// after the last entry of a compressed matrix is ignored.
absl::StatusOr<SparseArray> ReadSparse(NpzMember member);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_SPARSE_NPZ_H_
