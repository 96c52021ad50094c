// NumPy's .npz archives: zip files with an .npy file a member.
#ifndef CROUT_CLIENT_CLI_NPZ_H_
#define CROUT_CLIENT_CLI_NPZ_H_

#include <memory>
#include <string>
#include <variant>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/array.h"
#include "client/cli/sparse_array.h"
#include "client/cli/temporary_file.h"

namespace crout::cli {

// The array `name` ("A" for the member A.npy) of an archive; with an empty name, the only one, or
// the matrix of an archive that scipy.sparse.save_npz wrote, which has an array `format`.
// INVALID_ARGUMENT, naming the arrays there are, where there is no such array, or several without a
// name; as ReadNpy and ReadSparse for what is in the members. "-" is standard input, which is
// copied to a file that has no name first: an archive is read from its end. `deadline` is that of
// OpenInput.
absl::StatusOr<std::variant<Array, SparseArray>> ReadNpz(
    const std::string& path, const std::string& name, absl::Time deadline = absl::InfiniteFuture());

// One array after the other, compressed. FileError where the file cannot be written. "-" is
// standard output, to which Close copies all of it: a zip file is completed where it begins.
class NpzWriter {
 public:
  static absl::StatusOr<std::unique_ptr<NpzWriter>> Open(const std::string& path);
  ~NpzWriter();  // Without Close: what is in the file is no archive; standard output gets nothing.
  NpzWriter(const NpzWriter&) = delete;  // It owns the file.
  NpzWriter& operator=(const NpzWriter&) = delete;

  // Ends the array before, if there is one.
  absl::Status BeginArray(const std::string& name);
  absl::Status Write(absl::string_view bytes);  // of an .npy file
  absl::Status Close();

 private:
  NpzWriter() = default;
  absl::Status Error() const;
  absl::Status End();

  std::string path_;
  TemporaryFile unnamed_ = NoTemporaryFile();  // what is to be copied to standard output
  void* file_ = nullptr;                       // minizip's zipFile; null when closed
  bool in_array_ = false;
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_NPZ_H_
