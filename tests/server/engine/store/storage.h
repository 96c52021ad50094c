// SPDX-License-Identifier: Apache-2.0

// The kinds of storage below FactorStore, for tests that hold for each.
#ifndef CROUT_TESTS_SERVER_ENGINE_STORE_STORAGE_H_
#define CROUT_TESTS_SERVER_ENGINE_STORE_STORAGE_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/store/object_store.h"

namespace crout::testing {

enum class StorageKind { kDirectory, kSealedDirectory, kBucket };

// Empty at first. Damage by Write() is permanent.
class Storage {
 public:
  static std::unique_ptr<Storage> Make(StorageKind kind);
  virtual ~Storage() = default;

  // Opens the storage as a start of the daemon does. One store is open at a time.
  virtual absl::StatusOr<std::unique_ptr<ObjectStore>> Open() = 0;

  // Returns the names of the files with factors, without those in the quarantine.
  virtual std::vector<std::string> Names() const = 0;
  virtual std::string Read(const std::string& name) const = 0;
  virtual void Write(const std::string& name, const std::string& bytes) = 0;

  // Failpoints that each write and each read of a factor reaches.
  virtual const char* write_failpoint() const = 0;
  virtual const char* read_failpoint() const = 0;
};

// Names the kind in the names of tests.
std::string NameOfKind(StorageKind kind);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_ENGINE_STORE_STORAGE_H_
