// SPDX-License-Identifier: Apache-2.0

// Objects in a local directory, which has one folder. One process uses the directory at a time.
//
//   DIR/lock                       locked by the process that uses the directory
//   DIR/factors/STEM.safetensors   an object
//   DIR/quarantine/                damaged objects, for the operator
//
// The modification time of a file is the end of the lease of its factor. With a key, files are
// sealed (sealed_file.h). Files that are not sealed, or that another key sealed, stay unused.
#ifndef CROUT_SERVER_ENGINE_STORE_DIRECTORY_STORE_H_
#define CROUT_SERVER_ENGINE_STORE_DIRECTORY_STORE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/store/file_io.h"
#include "server/engine/store/object_cipher.h"
#include "server/engine/store/object_store.h"

namespace crout {

class DirectoryStore final : public ObjectStore {
 public:
  // Creates missing folders and locks the directory. FAILED_PRECONDITION if another process uses
  // it, or if the system refuses.
  static absl::StatusOr<std::unique_ptr<ObjectStore>> Open(
      const std::string& directory, const std::optional<ObjectKey>& key = std::nullopt);

  std::vector<std::string> folders() const override { return {""}; }
  std::string home() const override { return ""; }
  bool Holds(const std::string& /*folder*/) const override { return true; }
  // Half of the file system's bytes that are free or in the directory.
  absl::StatusOr<size_t> DefaultLimit() const override;
  size_t Charged(size_t bytes) const override;
  absl::StatusOr<ObjectList> List(const std::string& folder) override;
  absl::StatusOr<StoredObject> Put(const std::string& folder, const std::string& stem,
                                   ObjectBytes bytes, absl::Time lease_end) override;
  absl::StatusOr<std::unique_ptr<ObjectReader>> Open(const StoredObject& object) override;
  absl::Status Remove(const StoredObject& object) override;
  absl::Status Quarantine(const StoredObject& object) override;
  absl::Status SetLeaseEnd(const StoredObject& object, absl::Time end) override;

 private:
  DirectoryStore(const std::string& directory, const std::optional<ObjectKey>& key, OpenFile lock);
  std::string PathOf(const std::string& name) const { return factors_ + "/" + name; }

  const std::string directory_;
  const std::string factors_;
  const std::string quarantine_;
  const std::optional<ObjectKey> key_;
  const OpenFile lock_;
};

// Opens a regular file for reading.
absl::StatusOr<std::unique_ptr<ObjectReader>> OpenFileObject(const std::string& path);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_DIRECTORY_STORE_H_
