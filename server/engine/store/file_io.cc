// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "kernels/util/failpoint.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Linux transfers at most 2^31 - 4096 bytes in one call.
constexpr size_t kMaxTransfer = size_t{1} << 30;

absl::Status StatusOfErrno(int error, const char* operation) {
  const std::string message =
      absl::StrCat("the factor store could not ", operation, ": ", std::strerror(error));
  if (error == ENOSPC || error == EDQUOT || error == EFBIG) {
    return absl::ResourceExhaustedError(message);
  }
  if (error == ENOENT || error == ELOOP) return absl::DataLossError(message);
  return absl::UnavailableError(message);
}

}  // namespace

OpenFile::~OpenFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

absl::StatusOr<FileToRead> OpenToRead(const std::string& path) {
  // O_NONBLOCK: open() must not wait for the writer of a pipe.
  OpenFile file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.descriptor() < 0) return StatusOfErrno(errno, "open a file");
  struct stat about;
  if (fstat(file.descriptor(), &about) != 0) return StatusOfErrno(errno, "inspect a file");
  if (!S_ISREG(about.st_mode)) return absl::DataLossError("the file is not a regular file");
  return FileToRead{std::move(file), static_cast<uint64_t>(about.st_size)};
}

absl::StatusOr<OpenFile> CreateFile(const std::string& path) {
  CROUT_RETURN_IF_ERROR(Failpoint("store.create"));
  OpenFile file(
      open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (file.descriptor() < 0) return StatusOfErrno(errno, "create a file");
  return file;
}

absl::Status ReadAt(const OpenFile& file, uint64_t offset, std::span<std::byte> to) {
  for (size_t done = 0; done < to.size();) {
    const ssize_t count =
        pread(file.descriptor(), to.data() + done, std::min(to.size() - done, kMaxTransfer),
              static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return StatusOfErrno(errno, "read a file");
    if (count == 0) return absl::DataLossError("the file ends too early");
    done += static_cast<size_t>(count);
  }
  return Failpoint("store.read", to);
}

absl::Status WriteAll(const OpenFile& file, std::span<const std::byte> bytes) {
  CROUT_RETURN_IF_ERROR(Failpoint("store.write"));
  for (size_t done = 0; done < bytes.size();) {
    const ssize_t count =
        write(file.descriptor(), bytes.data() + done, std::min(bytes.size() - done, kMaxTransfer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return StatusOfErrno(errno, "write a file");
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

absl::Status WriteFileOnce(const std::string& directory, const std::string& path,
                           std::span<const std::span<const std::byte>> buffers) {
  return WriteFileOnce(directory, path, [&](const OpenFile& file) -> absl::Status {
    for (const std::span<const std::byte> buffer : buffers) {
      CROUT_RETURN_IF_ERROR(WriteAll(file, buffer));
    }
    return absl::OkStatus();
  });
}

absl::Status WriteFileOnce(const std::string& directory, const std::string& path,
                           absl::FunctionRef<absl::Status(const OpenFile& file)> write) {
  const std::string temporary = path + kTemporarySuffix;
  absl::Status status = [&]() -> absl::Status {
    CROUT_ASSIGN_OR_RETURN(const OpenFile file, CreateFile(temporary));
    CROUT_RETURN_IF_ERROR(write(file));
    return SyncFile(file);
  }();
  if (status.ok()) status = RenameFile(temporary, path);
  if (!status.ok()) {
    RemoveFile(temporary).IgnoreError();  // The next start removes it.
    return status;
  }
  status = SyncDirectory(directory);
  if (!status.ok()) RemoveFile(path).IgnoreError();  // A later start may find it; that is harmless.
  return status;
}

absl::Status SyncFile(const OpenFile& file) {
  CROUT_RETURN_IF_ERROR(Failpoint("store.sync"));
  if (fsync(file.descriptor()) != 0) return StatusOfErrno(errno, "sync a file");
  return absl::OkStatus();
}

absl::Status SyncDirectory(const std::string& path) {
  CROUT_RETURN_IF_ERROR(Failpoint("store.sync_directory"));
  const OpenFile directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.descriptor() < 0) return StatusOfErrno(errno, "open its directory");
  // Some file systems sync names without being asked, and refuse the call.
  if (fsync(directory.descriptor()) != 0 && errno != EINVAL) {
    return StatusOfErrno(errno, "sync its directory");
  }
  return absl::OkStatus();
}

absl::Status RenameFile(const std::string& from, const std::string& to) {
  CROUT_RETURN_IF_ERROR(Failpoint("store.rename"));
  if (std::rename(from.c_str(), to.c_str()) != 0) return StatusOfErrno(errno, "rename a file");
  return absl::OkStatus();
}

absl::Status RemoveFile(const std::string& path) {
  CROUT_RETURN_IF_ERROR(Failpoint("store.remove"));
  if (unlink(path.c_str()) == 0 || errno == ENOENT) return absl::OkStatus();
  return StatusOfErrno(errno, "remove a file");
}

}  // namespace crout
