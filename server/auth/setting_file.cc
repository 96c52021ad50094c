// SPDX-License-Identifier: Apache-2.0

#include "server/auth/setting_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

constexpr size_t kMaxFileBytes = size_t{1} << 20;  // files must be smaller
constexpr mode_t kForbidden = S_IWGRP | S_IWOTH;
// The owner may do anything and the group may read: some distributions have a group for keys.
constexpr mode_t kForbiddenIfPrivate = S_IWGRP | S_IXGRP | S_IRWXO;

class Descriptor {
 public:
  // O_NONBLOCK: opening a FIFO would otherwise wait for its writer.
  explicit Descriptor(const std::string& path)
      : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  Descriptor(const Descriptor&) = delete;  // Each object owns its descriptor.
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status CheckMode(const SettingFile& file, mode_t mode, FileAccess access) {
  if (access == FileAccess::kPublic) {
    if ((mode & kForbidden) == 0) return absl::OkStatus();
    return file.Refuse(absl::StrFormat(
        "has mode %04o, which lets users other than its owner change it. Run chmod go-w on it",
        mode & 07777));
  }
  if ((mode & kForbiddenIfPrivate) == 0) return absl::OkStatus();
  return file.Refuse(
      absl::StrFormat("has mode %04o, which gives other users access. Run chmod 600 on it, or "
                      "chmod 640 if a group may read it",
                      mode & 07777));
}

}  // namespace

absl::Status SettingFile::Refuse(absl::string_view why) const {
  return absl::FailedPreconditionError(absl::StrCat(flag, ": ", path, " ", why));
}

absl::StatusOr<std::string> ReadSettingFile(const SettingFile& file, FileAccess access) {
  const Descriptor opened(file.path);
  struct stat found = {};
  if (opened.get() < 0 || fstat(opened.get(), &found) != 0) {
    return file.Refuse(absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (!S_ISREG(found.st_mode)) return file.Refuse("is not a regular file");
  CROUT_RETURN_IF_ERROR(CheckMode(file, found.st_mode, access));
  std::string contents(kMaxFileBytes, 0);
  size_t size = 0;
  for (ssize_t got = 1; got > 0 && size < kMaxFileBytes; size += static_cast<size_t>(got)) {
    got = read(opened.get(), contents.data() + size, kMaxFileBytes - size);
    if (got < 0) return file.Refuse(absl::StrCat("cannot be read: ", std::strerror(errno)));
  }
  if (size == kMaxFileBytes)
    return file.Refuse("has 1 MiB or more; the limit is below 1 MiB. Check the path");
  contents.resize(size);
  return contents;
}

}  // namespace crout
