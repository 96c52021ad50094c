// Several arrays that are written together.
#ifndef CROUT_CLIENT_CLI_ARRAY_FILES_H_
#define CROUT_CLIENT_CLI_ARRAY_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/array.h"
#include "client/cli/array_writer.h"
#include "client/cli/npz.h"
#include "client/cli/temporary_file.h"

namespace crout::cli {

// Files PREFIX_PART.FORMAT; or, for the prefix "-", the arrays PART of one .npz archive on standard
// output, whatever the format.
class ArrayFiles {
 public:
  ArrayFiles(std::string prefix, FileFormat format);

  bool in_archive() const { return prefix_ == "-"; }
  FileFormat format() const { return format_; }  // of each part: .npy in an archive

  // The path to write a part to, and what writes a matrix there; once for each part. FileError
  // where there is no room for it. A part that nothing is written to is none in the archive, as it
  // is no file.
  absl::StatusOr<std::string> Add(const std::string& part);
  absl::StatusOr<std::unique_ptr<ArrayWriter>> NewWriter(const std::string& part);
  // A part that is a vector: a column, but of one dimension where NumPy reads it.
  absl::Status WriteVector(const std::string& part, Element element,
                           absl::Span<const std::byte> elements);
  // The names of the parts, of files or in the archive, in the order of Add().
  const std::vector<std::string>& names() const { return names_; }

  // Puts what has been added, and is written, into the archive, which takes one array after the
  // other: until then each is an open file. FileError.
  absl::Status Flush();
  // Writes the archive, after all parts. FileError.
  absl::Status Close();

 private:
  absl::Status WriteNpyVector(const std::string& part, Element element,
                              absl::Span<const std::byte> elements);

  const std::string prefix_;
  const FileFormat format_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, TemporaryFile>> parts_;  // that are not in the archive yet
  std::unique_ptr<NpzWriter> archive_;                        // made by the first Flush()
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_ARRAY_FILES_H_
