// SPDX-License-Identifier: Apache-2.0

#include "server/groups/rank_folder.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace crout {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "crout-group-";

// Sockets and MPI's files need no disk. The path must be short: sockets have at most 107
// characters.
std::string Root() {
  constexpr char kInMemory[] = "/dev/shm";
  return access(kInMemory, W_OK | X_OK) == 0 ? kInMemory : "/tmp";
}

absl::Status Failed(const std::string& path, const char* call) {
  return absl::UnavailableError(
      absl::StrCat("the folder of a group, ", path, ": ", call, ": ", std::strerror(errno)));
}

// Opens and locks a folder of this user. Returns no file, with errno, if the folder is another
// user's, is gone, or is locked by a process that uses it. Does not follow links.
OwnedFile Lock(const std::string& path) {
  OwnedFile folder(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW));
  struct stat state;
  if (folder.get() < 0 || fstat(folder.get(), &state) != 0) return OwnedFile();
  if (state.st_uid != geteuid()) {
    errno = EPERM;
    return OwnedFile();
  }
  if (flock(folder.get(), LOCK_EX | LOCK_NB) != 0) return OwnedFile();
  // Another process may have removed the folder before it was locked.
  if (lstat(path.c_str(), &state) != 0) return OwnedFile();
  return folder;
}

// Removes the folders of processes that no longer run. The system unlocks the folders of a process
// when it ends.
void RemoveOld(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (!absl::StartsWith(entry->path().filename().string(), kPrefix)) continue;
    if (const OwnedFile lock = Lock(entry->path().string()); lock.get() >= 0) {
      std::error_code ignored;  // The next start tries again.
      fs::remove_all(entry->path(), ignored);
    }
  }
}

}  // namespace

absl::StatusOr<RankFolder> RankFolder::Create() {
  constexpr int kMostAttempts = 100;
  const std::string root = Root();
  RemoveOld(root);
  for (int attempt = 1;; ++attempt) {
    std::string path = absl::StrCat(root, "/", kPrefix, "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) return Failed(path, "mkdtemp");
    OwnedFile lock = Lock(path);
    if (lock.get() >= 0) return RankFolder(std::move(path), std::move(lock));
    // Another daemon that starts removes this folder, because it was not locked yet.
    const bool removed = errno == EWOULDBLOCK || errno == ENOENT;
    if (!removed || attempt == kMostAttempts) return Failed(path, "lock");
  }
}

RankFolder::RankFolder(std::string path, OwnedFile lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

RankFolder::RankFolder(RankFolder&& other) noexcept
    : path_(std::exchange(other.path_, {})), lock_(std::move(other.lock_)) {}

RankFolder::~RankFolder() {
  if (path_.empty()) return;
  std::error_code ignored;  // The next daemon removes remaining files.
  fs::remove_all(path_, ignored);
}

std::string RankFolder::LogTail() const {
  constexpr std::streamoff kMost = 600;
  std::ifstream file(log(), std::ios::binary | std::ios::ate);
  if (!file) return {};
  const std::streamoff size = file.tellg();
  file.seekg(size > kMost ? size - kMost : 0);
  std::string text(std::istreambuf_iterator<char>(file), {});
  return std::string(absl::StripAsciiWhitespace(text));
}

absl::StatusOr<std::string> RankFolder::RenewFiles() const {
  const std::string path = path_ + "/mpi";
  std::error_code ignored;  // mkdir reports what could not be removed.
  fs::remove_all(path, ignored);
  fs::remove(log(), ignored);
  if (mkdir(path.c_str(), 0700) != 0) return Failed(path, "mkdir");
  return path;
}

}  // namespace crout
