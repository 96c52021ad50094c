// Files that say how the matrix of a step follows from that of the step before.
#ifndef CROUT_CLIENT_CLI_CHANGE_FILES_H_
#define CROUT_CLIENT_CLI_CHANGE_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "crout/matrix_change.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

// Empty paths, or those of one kind of change: `values`, `entries`, or `u` and `v`.
struct ChangeFiles {
  // A vector: one for each line of the coordinate text, or entry of the sparse matrix, that came
  // last. Or a sparse matrix with the same entries in the same order.
  std::string values;
  std::string entries;  // Matrix Market, coordinate: the entries that have new values
  std::string u, v;     // matrices of n rows each: U V^T is added

  std::vector<std::string> paths() const;
};

// INVALID_ARGUMENT, naming the files, unless they are a change, or none.
absl::Status CheckChange(const ChangeFiles& files);

// What they say, in the type of the matrix. `entry_digest`: of the entries that `values` belong to.
// FileError, or INVALID_ARGUMENT for what is in them.
absl::StatusOr<client::MatrixChange> ReadChange(const ChangeFiles& files, v1::Dtype dtype,
                                                const std::string& entry_digest);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_CHANGE_FILES_H_
