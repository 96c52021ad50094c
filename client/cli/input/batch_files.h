// SPDX-License-Identifier: Apache-2.0

// Files of the members of a batch.
#ifndef CROUT_CLIENT_CLI_INPUT_BATCH_FILES_H_
#define CROUT_CLIENT_CLI_INPUT_BATCH_FILES_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/formats/array.h"
#include "crout/batch.h"

namespace crout::cli {

struct BatchFile {
  std::string name;  // "a.mtx"; "batch.tar:a.mtx"
  Array matrix;      // by columns
};

// Reads the matrices of `paths`, in order, in one type. A file is one matrix. A directory is all
// its files with a matrix's name (matrix_input.h), sorted by name. A tar, plain or gzip, is the
// same in archive order. "-", standard input, is a file or a tar. All file formats of croutctl are
// accepted; sparse matrices are expanded. `dtype` unspecified selects the narrowest type that holds
// all matrices.
//
// FileError if a file cannot be read. INVALID_ARGUMENT for invalid contents, for a directory or tar
// without matrices, and for complex matrices with a real `dtype`. RESOURCE_EXHAUSTED beyond
// kMaxBatchBytes, and as from TarReader. `deadline` is that of OpenInput.
absl::StatusOr<std::vector<BatchFile>> ReadBatch(const std::vector<std::string>& paths,
                                                 std::optional<Dtype> dtype,
                                                 absl::Time deadline = absl::InfiniteFuture());
// Limit of all matrices together in dense form, because a line of text can declare any size.
inline constexpr int64_t kMaxBatchBytes = int64_t{16} << 30;

// Adds a matrix to `source`, which refers to it; a right-hand side is for `member`.
void AddTo(BatchSource* source, const Array& matrix, int64_t member);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_BATCH_FILES_H_
