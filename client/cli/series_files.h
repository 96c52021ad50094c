// Which files are the steps of a series.
#ifndef CROUT_CLIENT_CLI_SERIES_FILES_H_
#define CROUT_CLIENT_CLI_SERIES_FILES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/cli/array.h"
#include "client/cli/change_files.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

// The files of one step; an empty path: none.
struct StepFiles {
  std::string matrix;  // none: with the matrix of the step before, changed where there is a change
  std::string rhs;     // none: what is for all steps that have none of their own
  ChangeFiles change;  // none beside a matrix
};

// The steps of `paths`, in their order: a file is the matrix of one step, a directory all of its
// steps, by name. Of a directory the files count that end in .mtx, .npy, .npz, .txt or .csv, with
// or without .gz. What a file is, its name says: a word of letters, then what tells the step. The
// word "b" or "rhs" is a right-hand side, "values", "entries", "u" and "v" are changes (see
// ChangeFiles), every other word is a matrix; those of one step have the rest in common, but for
// the ending, and for _, - or . before it. So A_007.mtx.gz goes with b_007.npy and rhs7.txt with
// A7.mtx. Steps go by that rest in the order of its bytes: numbers need leading zeros.
//
// FileError for what cannot be read. INVALID_ARGUMENT for a directory without steps, for two files
// of one kind in one step, for a change beside a matrix, and for what is no change.
absl::StatusOr<std::vector<StepFiles>> FindSteps(const std::vector<std::string>& paths);

// A right-hand side, or another matrix that is no text for the server, by columns, from any file
// that croutctl reads: a series takes no texts, so that Matrix Market is read here. `dtype`
// unspecified: as the file says. FileError, or INVALID_ARGUMENT for what is in it, coordinates too.
absl::StatusOr<Array> ReadRhs(const std::string& path, v1::Dtype dtype);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_SERIES_FILES_H_
