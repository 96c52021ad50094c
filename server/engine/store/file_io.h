// SPDX-License-Identifier: Apache-2.0

// System calls of the factor store, with statuses that separate a full disk, a failing disk and
// damaged files.
//
// RESOURCE_EXHAUSTED: the disk or the quota is full. DATA_LOSS: a file is missing, is not a regular
// file, or ends too early. UNAVAILABLE: any other error of the system, which may be transient.
// Messages name no path. Failpoints: store.create, store.write, store.sync, store.rename,
// store.sync_directory, store.read, store.remove.
#ifndef CROUT_SERVER_ENGINE_STORE_FILE_IO_H_
#define CROUT_SERVER_ENGINE_STORE_FILE_IO_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

inline constexpr const char* kTemporarySuffix = ".tmp";

// Owns an open file. Move-only.
class OpenFile {
 public:
  OpenFile() = default;
  explicit OpenFile(int descriptor) : descriptor_(descriptor) {}
  OpenFile(OpenFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  ~OpenFile();

  int descriptor() const { return descriptor_; }

 private:
  int descriptor_ = -1;
};

struct FileToRead {
  OpenFile file;
  uint64_t size = 0;
};

// Opens a regular file for reading. Follows no link at the last component.
absl::StatusOr<FileToRead> OpenToRead(const std::string& path);
// Creates a file for this user only. Replaces an existing file.
absl::StatusOr<OpenFile> CreateFile(const std::string& path);

// Reads exactly `to.size()` bytes from `offset` on.
absl::Status ReadAt(const OpenFile& file, uint64_t offset, std::span<std::byte> to);
// Appends all bytes.
absl::Status WriteAll(const OpenFile& file, std::span<const std::byte> bytes);
// Writes the buffers to `path` so that it exists completely or not at all after a crash: writes and
// syncs `path` with the suffix kTemporarySuffix, renames it, and syncs `directory`. Removes the
// temporary file after an error.
absl::Status WriteFileOnce(const std::string& directory, const std::string& path,
                           std::span<const std::span<const std::byte>> buffers);
// The same for a file that `write` fills. Returns its error.
absl::Status WriteFileOnce(const std::string& directory, const std::string& path,
                           absl::FunctionRef<absl::Status(const OpenFile& file)> write);
// Blocks until the contents are on the disk.
absl::Status SyncFile(const OpenFile& file);
// Blocks until the names in the directory are on the disk.
absl::Status SyncDirectory(const std::string& path);
// Replaces `to`. Both are in the same file system.
absl::Status RenameFile(const std::string& from, const std::string& to);
// OK if there is no such file.
absl::Status RemoveFile(const std::string& path);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_FILE_IO_H_
