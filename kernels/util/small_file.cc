// SPDX-License-Identifier: Apache-2.0

#include "kernels/util/small_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace crout {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;  // It closes what it owns.
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return number_; }
  bool Close() { return number_ < 0 || close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

absl::Status Failed(const char* what, const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat(what, " ", path));
}

absl::Status Write(int file, const std::string& contents, const std::string& path) {
  for (size_t done = 0; done < contents.size();) {
    const ssize_t count = write(file, contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("writing", path);
    done += static_cast<size_t>(count);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadSmallFile(const std::string& path, size_t max_bytes) {
  // O_NONBLOCK: open() must not wait, whatever kind of file the path names.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) return Failed("opening", path);
  struct stat about;
  if (fstat(file.get(), &about) != 0) return Failed("inspecting", path);
  if (!S_ISREG(about.st_mode) || about.st_size > static_cast<off_t>(max_bytes)) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is not a regular file of at most ", max_bytes, " bytes"));
  }
  std::string contents(static_cast<size_t>(about.st_size), '\0');
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t count = read(file.get(), contents.data() + done, contents.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failed("reading", path);
    if (count == 0) break;
    done += static_cast<size_t>(count);
  }
  contents.resize(done);
  return contents;
}

absl::Status ReplaceSmallFile(const std::string& path, const std::string& contents) {
  std::error_code ignored;  // mkostemp reports a missing directory
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), ignored);
  std::string temporary = path + ".XXXXXX";
  FileDescriptor file(mkostemp(temporary.data(), O_CLOEXEC));
  if (file.get() < 0) return Failed("creating", temporary);
  absl::Status status = Write(file.get(), contents, temporary);
  if (status.ok() && !file.Close()) status = Failed("closing", temporary);
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0)
    status = Failed("replacing", path);
  if (!status.ok()) (void)unlink(temporary.c_str());
  return status;
}

}  // namespace crout
