// Which files are the members of a batch, and what is in them.
#ifndef CROUT_CLIENT_CLI_BATCH_FILES_H_
#define CROUT_CLIENT_CLI_BATCH_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/array.h"
#include "crout/batch_data.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

struct BatchFile {
  std::string name;  // "a.mtx"; "batch.tar:a.mtx"
  Array matrix;      // by columns
};

// The matrices of `paths`, in their order, all in one type: a file is one, a directory all of its
// files with a matrix's name (matrix_input.h), by name, and a tar, plain or gzip, likewise, in its
// order; "-", standard input, is a file or a tar. Files are what croutctl reads everywhere; sparse
// ones are made dense. `dtype` unspecified: the narrowest type that holds them all.
//
// FileError for what cannot be read. INVALID_ARGUMENT for what is in it, for a directory or a tar
// without matrices, and for complex ones in a real `dtype`. RESOURCE_EXHAUSTED for more than
// kMostBatchBytes, and as TarReader. `deadline` is that of OpenInput.
absl::StatusOr<std::vector<BatchFile>> ReadBatch(const std::vector<std::string>& paths,
                                                 v1::Dtype dtype,
                                                 absl::Time deadline = absl::InfiniteFuture());
// Of all matrices together, dense: a line of text may claim any size.
inline constexpr int64_t kMostBatchBytes = int64_t{16} << 30;

// One of them more in `source`, which refers to it; of right-hand sides for `member`.
void AddTo(client::BatchSource* source, const Array& matrix, int64_t member);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_BATCH_FILES_H_
