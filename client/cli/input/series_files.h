// SPDX-License-Identifier: Apache-2.0

// Files of the steps of a series.
#ifndef CROUT_CLIENT_CLI_INPUT_SERIES_FILES_H_
#define CROUT_CLIENT_CLI_INPUT_SERIES_FILES_H_

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/tar_reader.h"
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
  // its files are ignored. "-", standard input, is a file or a tar, of which Await() reads the
  // steps. In a directory only files with a matrix's name count (matrix_input.h).
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
  // the errors of TarReader. `deadline`: see StandardInput. `has_common_rhs`: steps without a
  // right-hand side have one in common.
  static absl::StatusOr<SeriesSteps> Find(const std::vector<std::string>& paths,
                                          bool has_common_rhs,
                                          std::function<absl::Time()> deadline);

  // Returns whether there is a step `index`, the number of steps that were solved. Waits for it if
  // a tar on standard input is still arriving. A step of the tar is found before the end of the tar
  // if its name is its number in the tar, from 0 on, and it has a right-hand side and either a
  // matrix or a change. All other steps are found at the end, sorted. A file that arrives for an
  // earlier step is INVALID_ARGUMENT, but an initial guess is ignored. Errors otherwise as from
  // Find().
  absl::StatusOr<bool> Await(size_t index);

  // The steps that have been found.
  const std::vector<StepFiles>& files() const { return files_; }

  // Replaces the paths of unpacked files in `text`, a path or a message, by the names that the user
  // gave: "steps.tar:A_007.mtx", "standard input".
  std::string Shown(absl::string_view text) const;

 private:
  // Steps by their names.
  using NamedSteps = std::map<std::string, StepFiles>;

  // A tar on standard input.
  struct Arriving {
    TarReader tar;
    std::string directory;  // for the unpacked files
    size_t at = 0;          // index in files_ of the next step that is found
    size_t found = 0;       // steps that were found before the end
    size_t digits = 0;      // digits of their names
    NamedSteps steps = {};  // not found yet
  };

  absl::Status Add(const std::string& path, const std::function<absl::Time()>& deadline);
  absl::Status AddStandardInput(const std::function<absl::Time()>& deadline);
  absl::Status AddDirectory(const std::string& directory);
  absl::Status AddTar(const std::string& path, const std::string& name);
  // Makes a directory for the files of the archive `name`.
  absl::StatusOr<std::string> NewDirectory(const std::string& name);
  // Reads the next file of the arriving tar.
  absl::Status ReadArriving();
  // Whether a step of the arriving tar can be solved.
  bool IsComplete(const StepFiles& step) const;
  // The status with the names that the user gave.
  absl::Status Shown(const absl::Status& status) const;

  std::vector<StepFiles> files_;
  bool has_common_rhs_ = false;
  std::optional<Arriving> arriving_;
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
