// SPDX-License-Identifier: Apache-2.0

// Files that describe a change of the matrix between two steps of a series.
#ifndef CROUT_CLIENT_CLI_INPUT_CHANGE_FILES_H_
#define CROUT_CLIENT_CLI_INPUT_CHANGE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "crout/matrix_change.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

// All paths are empty, or those of one kind of change are set: `values`, `entries`, or `u` and `v`.
struct ChangeFiles {
  // A vector with one value for each line of the last coordinate text or entry of the last sparse
  // matrix; or a sparse matrix with the same entries in the same order.
  std::string values;
  std::string entries;  // Matrix Market coordinate file with the entries that change
  std::string u, v;     // matrices of n rows each; U V^T is added

  std::vector<std::string> paths() const;
};

// INVALID_ARGUMENT, naming the files, unless they are one change or none.
absl::Status CheckChange(const ChangeFiles& files);

// Reads a change in the type of the matrix. `entry_digest` identifies the entries to which `values`
// belong. FileError, or INVALID_ARGUMENT for invalid contents.
absl::StatusOr<client::MatrixChange> ReadChange(const ChangeFiles& files, v1::Dtype dtype,
                                                const std::string& entry_digest);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_CHANGE_FILES_H_
