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
constexpr char kLock[] = "/lock";

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

// Opens the lock file of a folder and locks it, or returns no file.
OwnedFile Lock(const std::string& path) {
  OwnedFile lock(open((path + kLock).c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (lock.get() < 0 || flock(lock.get(), LOCK_EX | LOCK_NB) != 0) return OwnedFile();
  return lock;
}

bool IsOurs(const fs::path& path) {
  struct stat state;
  return lstat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode) && state.st_uid == geteuid();
}

// Removes the folders of processes that no longer run.
void RemoveOld(const std::string& root) {
  std::error_code error;
  for (fs::directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string path = entry->path().string();
    if (!absl::StartsWith(entry->path().filename().string(), kPrefix) || !IsOurs(entry->path())) {
      continue;
    }
    // A folder without a lock file is being made.
    if (access((path + kLock).c_str(), F_OK) != 0) continue;
    if (const OwnedFile lock = Lock(path); lock.get() >= 0) {
      std::error_code ignored;  // The next start tries again.
      fs::remove_all(path, ignored);
    }
  }
}

}  // namespace

absl::StatusOr<RankFolder> RankFolder::Create() {
  const std::string root = Root();
  RemoveOld(root);
  std::string path = absl::StrCat(root, "/", kPrefix, "XXXXXX");
  if (mkdtemp(path.data()) == nullptr) return Failed(path, "mkdtemp");
  OwnedFile lock = Lock(path);
  if (lock.get() < 0) return Failed(path, "lock");
  return RankFolder(std::move(path), std::move(lock));
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
