// SPDX-License-Identifier: Apache-2.0

// Arrays that are written together.
#ifndef CROUT_CLIENT_CLI_OUTPUT_ARRAY_FILES_H_
#define CROUT_CLIENT_CLI_OUTPUT_ARRAY_FILES_H_

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "client/cli/formats/array.h"
#include "client/cli/formats/npz.h"
#include "client/cli/formats/temporary_file.h"
#include "client/cli/output/array_writer.h"

namespace crout::cli {

// Files PREFIX_PART.FORMAT. The prefix "-" selects one .npz archive on standard output, with arrays
// PART; `format` is then ignored. The prefix "" selects standard output for the parts, one after
// the other; parts in text are separated by an empty line. As .npz they are in one archive.
class ArrayFiles {
 public:
  ArrayFiles(std::string prefix, FileFormat format);

  bool in_archive() const { return prefix_ == "-"; }
  bool on_standard_output() const { return prefix_.empty() || in_archive(); }
  FileFormat format() const { return format_; }  // format of each part; .npy in an archive

  // Return the path of a part, or a writer for it. Each part has one call of either. FileError if
  // there is no space. A part that is never written has no file and is not in the archive.
  absl::StatusOr<std::string> Add(const std::string& part);
  absl::StatusOr<std::unique_ptr<ArrayWriter>> NewWriter(const std::string& part);
  // Writes a vector as a part: an array of one dimension in NumPy's formats, otherwise a column.
  absl::Status WriteVector(const std::string& part, Element element,
                           absl::Span<const std::byte> elements);
  // Names of the parts, as files or otherwise as given, in the order of Add().
  const std::vector<std::string>& names() const { return names_; }

  // Appends the written parts to the archive. Until then each part is an open file. FileError.
  absl::Status Flush();
  // Writes the archive after all parts. FileError.
  absl::Status Close();

 private:
  absl::Status WriteNpyVector(const std::string& part, Element element,
                              absl::Span<const std::byte> elements);

  const std::string prefix_;
  const FileFormat format_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, TemporaryFile>> parts_;  // not in the archive yet
  std::unique_ptr<NpzWriter> archive_;                        // created by the first Flush()
};

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_OUTPUT_ARRAY_FILES_H_
