// SPDX-License-Identifier: Apache-2.0

// NumPy's .npz archives: zip files in which every member is an .npy file.
#ifndef CROUT_CLIENT_CLI_FORMATS_NPZ_H_
#define CROUT_CLIENT_CLI_FORMATS_NPZ_H_

#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/temporary_file.h"

namespace crout::cli {

// Reads the array `name` of an archive ("A" for the member A.npy). An empty name selects the only
// array, or the sparse matrix of an archive of scipy.sparse.save_npz, which has an array `format`.
// "-" is standard input; it is first copied to an unnamed file, because an archive is read from its
// end. `deadline`: see OpenInput.
//
// INVALID_ARGUMENT, listing the arrays, if there is no such array, or several and no name. Also for
// invalid arrays and sparse matrices, as from ReadNpy.
absl::StatusOr<std::variant<Array, SparseArray>> ReadNpz(
    const std::string& path, const std::string& name, absl::Time deadline = absl::InfiniteFuture());

// Writes arrays one after the other, compressed. FileError if the file cannot be written. "-" is
// standard output: Close copies the archive there, because a zip file is completed at its
// beginning.
class NpzWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NpzWriter>> Open(const std::string& path);
  ~NpzWriter();  // Without Close the file is not a valid archive, and nothing is written to
                 // standard output.
  NpzWriter(const NpzWriter&) = delete;  // It owns the file.
  NpzWriter& operator=(const NpzWriter&) = delete;

  // Starts an array and ends the previous one.
  absl::Status BeginArray(const std::string& name);
  absl::Status Write(absl::string_view bytes);  // bytes of an .npy file
  absl::Status Close();

 private:
  NpzWriter() = default;
  absl::Status Error() const;
  absl::Status End();

  std::string path_;
  TemporaryFile unnamed_ = NoTemporaryFile();  // to be copied to standard output
  void* file_ = nullptr;                       // minizip's zipFile; null when closed
  bool in_array_ = false;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_NPZ_H_
