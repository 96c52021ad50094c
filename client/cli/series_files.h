// Which files are the steps of a series.
#ifndef CROUT_CLIENT_CLI_SERIES_FILES_H_
#define CROUT_CLIENT_CLI_SERIES_FILES_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/array.h"
#include "client/cli/change_files.h"
#include "client/cli/temporary_file.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

// The files of one step; an empty path: none.
struct StepFiles {
  std::string matrix;  // none: with the matrix of the step before, changed where there is a change
  std::string rhs;     // none: what is for all steps that have none of their own
  ChangeFiles change;  // none beside a matrix
  std::string x0;      // none: iterations start at the last solution
};

// The steps of a series, and what of them was unpacked, as long as this lives.
class SeriesSteps {
 public:
  // The steps of `paths`, in their order: a file is the matrix of one step, a directory all of its
  // steps, by name; so is a tar, plain or gzip, of whatever directories its files are, and "-",
  // standard input, which is a file or a tar. Of a directory the files count that have a matrix's
  // name (matrix_input.h). What a file is, its name says: a word of letters, then what tells the
  // step. The word "b" or "rhs" is a right-hand side, "x0" (with a _, - or . behind it) a start,
  // "values", "entries", "u" and "v" are changes (see ChangeFiles), every other word is a matrix;
  // those of one step have the rest in common, but for the ending, and for _, - or . before it. So
  // A_007.mtx.gz goes with b_007.npy and rhs7.txt with A7.mtx. Steps go by that rest in the order
  // of its bytes: numbers need leading zeros.
  //
  // FileError for what cannot be read. INVALID_ARGUMENT for a directory without steps, for two
  // files of one kind in one step, for a change beside a matrix, for what is no change, and as
  // TarReader. `deadline` is that of OpenInput.
  static absl::StatusOr<SeriesSteps> Find(const std::vector<std::string>& paths,
                                          absl::Time deadline);

  const std::vector<StepFiles>& files() const { return files_; }

  // `text`, a path or a message, with the names that a user knows for what was unpacked:
  // "steps.tar:A_007.mtx", "standard input".
  std::string Shown(absl::string_view text) const;

 private:
  absl::Status Add(const std::string& path, absl::Time deadline);
  absl::Status AddDirectory(const std::string& directory);
  absl::Status AddTar(const std::string& path, const std::string& name);

  std::vector<StepFiles> files_;
  std::vector<TemporaryDirectory> unpacked_;
  std::vector<TemporaryFile> copies_;                       // of standard input
  std::vector<std::pair<std::string, std::string>> names_;  // for what stands in paths
};

// A right-hand side, a start, or another matrix that is no text for the server, by columns, from
// any file that croutctl reads: a series takes no texts, so that Matrix Market is read here.
// `dtype` unspecified: as the file says. FileError, or INVALID_ARGUMENT for what is in it,
// coordinates too. `deadline` is that of OpenInput.
absl::StatusOr<Array> ReadRhs(const std::string& path, v1::Dtype dtype,
                              absl::Time deadline = absl::InfiniteFuture());

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_SERIES_FILES_H_
