// SPDX-License-Identifier: Apache-2.0

// Files of the steps of a series.
#ifndef CROUT_CLIENT_CLI_INPUT_SERIES_FILES_H_
#define CROUT_CLIENT_CLI_INPUT_SERIES_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/temporary_file.h"
#include "crout/matrix_change.h"

namespace crout::cli {

// A change of the matrix between two steps. It has one kind, `values`, `entries`, or `u` and `v`;
// the other paths are empty. All paths are empty if the matrix does not change.
struct ChangeFiles {
  // A vector with the value of each entry of the last matrix: a line of a coordinate text, or an
  // entry of a sparse matrix. Also accepts a sparse matrix with the same entries in the same order.
  std::string values;
  std::string entries;  // Matrix Market coordinate file with the entries that change
  std::string u, v;     // matrices of n rows each; U V^T is added

  std::vector<std::string> paths() const;
};

// Files of one step; an empty path means none.
struct StepFiles {
  std::string matrix;  // none: the previous matrix, or its change
  std::string rhs;     // none: the right-hand side of --rhs or --ones
  ChangeFiles change;  // none if there is a matrix
  std::string x0;      // none: iterations start at the last solution
};

// The steps of a series. Owns the unpacked files.
class SeriesSteps {
 public:
  // Finds the steps of `paths`, in order. A file is the matrix of one step. A directory is all of
  // its steps, sorted by name. A tar, plain or gzip, is treated as one directory; the paths of
  // its files are ignored. "-", standard input, is a file or a tar. In a directory only files with
  // a matrix's name count (matrix_input.h).
  //
  // A name is a word of letters, which gives the kind, followed by the name of the step. Kinds: "b"
  // or "rhs" is a right-hand side; "x0" (followed by _, - or .) an initial guess; "values",
  // "entries", "u" and "v" are changes (see ChangeFiles); every other word is a matrix. Files of
  // one step have the same step name, without the file ending and a leading _, - or . (A_007.mtx.gz
  // goes with b_007.npy, and rhs7.txt with A7.mtx). Steps are sorted by the bytes of the step name:
  // numbers need leading zeros.
  //
  // FileError if a file cannot be read. INVALID_ARGUMENT for a directory without steps, for two
  // files of one kind in one step, for a change beside a matrix, and for an incomplete change. Also
  // the errors of TarReader. `deadline`: see OpenInput.
  static absl::StatusOr<SeriesSteps> Find(const std::vector<std::string>& paths,
                                          absl::Time deadline);

  const std::vector<StepFiles>& files() const { return files_; }

  // Replaces the paths of unpacked files in `text`, a path or a message, by the names that the user
  // gave: "steps.tar:A_007.mtx", "standard input".
  std::string Shown(absl::string_view text) const;

 private:
  absl::Status Add(const std::string& path, absl::Time deadline);
  absl::Status AddDirectory(const std::string& directory);
  absl::Status AddTar(const std::string& path, const std::string& name);

  std::vector<StepFiles> files_;
  std::vector<TemporaryDirectory> unpacked_;
  std::vector<TemporaryFile> copies_;                       // copies of standard input
  std::vector<std::pair<std::string, std::string>> names_;  // names for the paths of unpacked files
};

// Reads a change in the type of the matrix. `entry_digest` identifies the entries to which `values`
// belong. FileError, or INVALID_ARGUMENT for invalid contents.
absl::StatusOr<MatrixChange> ReadChange(const ChangeFiles& files, Dtype dtype,
                                        const std::string& entry_digest);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_INPUT_SERIES_FILES_H_
