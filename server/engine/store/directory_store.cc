// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/directory_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/status_macros.h"
#include "server/engine/store/sealed_file.h"

namespace crout {
namespace {

namespace fs = std::filesystem;

constexpr absl::string_view kSuffix = ".safetensors";
// File systems allocate blocks of this many bytes.
constexpr size_t kBlockBytes = 4096;

absl::Status CreateFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) {
    return absl::FailedPreconditionError(
        absl::StrCat("--store: creating ", path, ": ", error.message()));
  }
  return absl::OkStatus();
}

absl::StatusOr<OpenFile> LockDirectory(const std::string& directory) {
  const std::string path = absl::StrCat(directory, "/lock");
  OpenFile lock(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR));
  if (lock.descriptor() < 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("--store: opening ", path, ": ", std::strerror(errno)));
  }
  if (flock(lock.descriptor(), LOCK_EX | LOCK_NB) == 0) return lock;
  return absl::FailedPreconditionError(
      absl::StrCat("--store: another croutd uses ", directory,
                   ": stop it, or give each daemon a separate directory"));
}

// Returns the bytes of the file system that this user may use in addition.
size_t FreeBytes(const std::string& directory) {
  struct statvfs about;
  if (statvfs(directory.c_str(), &about) != 0) return 0;
  return static_cast<size_t>(about.f_bavail) * about.f_frsize;
}

struct ListedFile {
  std::string name;  // relative to the folder
  bool nested = false;
  uint64_t bytes = 0;
  absl::Time modified;
};

// Lists all regular files below the folder.
absl::StatusOr<std::vector<ListedFile>> ListFiles(const std::string& folder) {
  std::vector<ListedFile> files;
  std::error_code error;
  for (fs::recursive_directory_iterator next(folder, error), end; !error && next != end;
       next.increment(error)) {
    const std::string path = next->path().string();
    struct stat about;
    if (stat(path.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) continue;
    files.push_back({path.substr(folder.size() + 1), next.depth() > 0,
                     static_cast<uint64_t>(about.st_size), absl::TimeFromTimespec(about.st_mtim)});
  }
  if (error) {
    return absl::UnavailableError(absl::StrCat("--store: listing ", folder, ": ", error.message()));
  }
  return files;
}

size_t SizeOnDisk(size_t bytes) { return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes; }

class FileObject final : public ObjectReader {
 public:
  explicit FileObject(FileToRead file) : file_(std::move(file)) {}
  uint64_t size() const override { return file_.size; }
  absl::Status ReadAt(uint64_t offset, std::span<std::byte> to) const override {
    return crout::ReadAt(file_.file, offset, to);
  }

 private:
  const FileToRead file_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ObjectReader>> OpenFileObject(const std::string& path) {
  CROUT_ASSIGN_OR_RETURN(FileToRead file, OpenToRead(path));
  return std::make_unique<FileObject>(std::move(file));
}

absl::StatusOr<std::unique_ptr<ObjectStore>> DirectoryStore::Open(
    const std::string& directory, const std::optional<ObjectKey>& key) {
  CROUT_RETURN_IF_ERROR(CreateFolder(directory));
  CROUT_ASSIGN_OR_RETURN(OpenFile lock, LockDirectory(directory));
  std::unique_ptr<DirectoryStore> store(new DirectoryStore(directory, key, std::move(lock)));
  for (const std::string& path : {store->factors_, store->quarantine_}) {
    CROUT_RETURN_IF_ERROR(CreateFolder(path));
    // The names of files are handles, which give access to the factors.
    if (chmod(path.c_str(), S_IRWXU) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("--store: restricting ", path, ": ", std::strerror(errno)));
    }
  }
  CROUT_RETURN_IF_ERROR(SyncDirectory(directory));
  // The name of the directory itself. It usually existed before, and its parent may be unreadable.
  SyncDirectory(fs::absolute(directory).parent_path()).IgnoreError();
  return store;
}

DirectoryStore::DirectoryStore(const std::string& directory, const std::optional<ObjectKey>& key,
                               OpenFile lock)
    : directory_(directory),
      factors_(directory + "/factors"),
      quarantine_(directory + "/quarantine"),
      key_(key),
      lock_(std::move(lock)) {}

absl::StatusOr<size_t> DirectoryStore::DefaultLimit() const {
  size_t bytes = FreeBytes(directory_);
  for (const std::string& folder : {factors_, quarantine_}) {
    CROUT_ASSIGN_OR_RETURN(const std::vector<ListedFile> files, ListFiles(folder));
    for (const ListedFile& file : files) bytes += SizeOnDisk(file.bytes);
  }
  return bytes / 2;
}

size_t DirectoryStore::Charged(size_t bytes) const {
  return SizeOnDisk(key_ ? ObjectCipher::SealedSize(bytes) : bytes);
}

absl::StatusOr<ObjectList> DirectoryStore::List(const std::string& /*folder*/) {
  ObjectList list;
  CROUT_ASSIGN_OR_RETURN(std::vector<ListedFile> files, ListFiles(factors_));
  for (ListedFile& file : files) {
    if (absl::EndsWith(file.name, absl::StrCat(kSuffix, kTemporarySuffix)) &&
        RemoveFile(PathOf(file.name)).ok()) {
      continue;  // unfinished
    }
    absl::string_view stem = file.name;
    if (!file.nested && absl::ConsumeSuffix(&stem, kSuffix)) {
      list.objects.push_back({.folder = "",
                              .stem = std::string(stem),
                              .name = file.name,
                              .charged = SizeOnDisk(file.bytes),
                              .bytes = file.bytes,
                              .tag = "",
                              .lease_end = file.modified});
    } else {
      ++list.others;
      list.other_bytes += SizeOnDisk(file.bytes);
    }
  }
  CROUT_ASSIGN_OR_RETURN(files, ListFiles(quarantine_));
  list.quarantined = std::ssize(files);
  for (const ListedFile& file : files) list.quarantined_bytes += SizeOnDisk(file.bytes);
  return list;
}

absl::StatusOr<StoredObject> DirectoryStore::Put(const std::string& folder, const std::string& stem,
                                                 ObjectBytes bytes, absl::Time lease_end) {
  StoredObject object{.folder = folder, .stem = stem, .name = absl::StrCat(stem, kSuffix)};
  size_t size = 0;
  for (const std::span<const std::byte> piece : bytes) size += piece.size();
  object.bytes = key_ ? ObjectCipher::SealedSize(size) : size;
  object.charged = SizeOnDisk(object.bytes);
  const std::string path = PathOf(object.name);
  CROUT_RETURN_IF_ERROR(key_ ? WriteFileOnce(factors_, path,
                                             [&](const OpenFile& file) {
                                               return WriteSealed(file, *key_, stem, bytes);
                                             })
                             : WriteFileOnce(factors_, path, bytes));
  SetLeaseEnd(object, lease_end).IgnoreError();
  return object;
}

absl::StatusOr<std::unique_ptr<ObjectReader>> DirectoryStore::Open(const StoredObject& object) {
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<ObjectReader> file, OpenFileObject(PathOf(object.name)));
  if (key_) return OpenSealed(std::move(file), *key_, object.stem);
  std::array<std::byte, sizeof(uint64_t)> start = {};
  if (file->size() < start.size()) return file;
  CROUT_RETURN_IF_ERROR(file->ReadAt(0, start));
  if (!ObjectCipher::IsSealed(start)) return file;
  return absl::FailedPreconditionError("the file is sealed: set --store-key-file");
}

absl::Status DirectoryStore::Remove(const StoredObject& object) {
  return RemoveFile(PathOf(object.name));
}

absl::Status DirectoryStore::Quarantine(const StoredObject& object) {
  std::error_code error;
  fs::rename(PathOf(object.name), absl::StrCat(quarantine_, "/", object.name), error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the factor store could not move a damaged file: ", error.message()));
}

absl::Status DirectoryStore::SetLeaseEnd(const StoredObject& object, absl::Time end) {
  // The last second that all file systems can store; a lease beyond it has no end.
  const absl::Time last = absl::FromUnixSeconds(int64_t{0xffffffff});
  const timespec times[] = {{0, UTIME_OMIT}, absl::ToTimespec(std::min(end, last))};
  if (utimensat(AT_FDCWD, PathOf(object.name).c_str(), times, AT_SYMLINK_NOFOLLOW) == 0)
    return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("the factor store could not set the time of a file: ", std::strerror(errno)));
}

}  // namespace crout
