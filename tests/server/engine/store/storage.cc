// SPDX-License-Identifier: Apache-2.0

#include "tests/server/engine/store/storage.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "server/engine/store/directory_store.h"
#include "server/replicas/shared_store.h"
#include "tests/server/engine/store/stored_factors.h"
#include "tests/support/fakes/memory_s3.h"

namespace crout::testing {
namespace {

class DirectoryStorage final : public Storage {
 public:
  explicit DirectoryStorage(std::optional<ObjectKey> key) : key_(std::move(key)) {}

  absl::StatusOr<std::unique_ptr<ObjectStore>> Open() override {
    return DirectoryStore::Open(folder_.path(), key_);
  }
  std::vector<std::string> Names() const override {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / "factors")) {
      names.push_back("factors/" + entry.path().filename().string());
    }
    return names;
  }
  std::string Read(const std::string& name) const override { return ReadBytes(folder_ / name); }
  void Write(const std::string& name, const std::string& bytes) override {
    WriteBytes(folder_ / name, bytes);
  }
  const char* write_failpoint() const override { return "store.write"; }
  const char* read_failpoint() const override { return "store.read"; }

 private:
  const TemporaryFolder folder_;
  const std::optional<ObjectKey> key_;
};

class BucketStorage final : public Storage {
 public:
  absl::StatusOr<std::unique_ptr<ObjectStore>> Open() override {
    return SharedStore::Open(std::make_unique<MemoryS3>(bucket_, std::make_shared<Connection>()),
                             {.prefix = "crout/",
                              .name = "a",
                              // The leases hold although tests advance the clock.
                              .duration = std::chrono::hours(1000)});
  }
  std::vector<std::string> Names() const override {
    const std::vector<std::string> keys = bucket_->Keys("crout/factors/");
    std::vector<std::string> names;
    for (const std::string& key : keys) {
      const bool damaged = std::ranges::find(keys, key + ".damaged") != keys.end();
      if (absl::EndsWith(key, ".safetensors") && !damaged) names.push_back(key);
    }
    return names;
  }
  std::string Read(const std::string& name) const override { return bucket_->Read(name); }
  void Write(const std::string& name, const std::string& bytes) override {
    bucket_->Write(name, bytes);
  }
  const char* write_failpoint() const override { return "s3.send"; }
  const char* read_failpoint() const override { return "s3.get"; }

 private:
  const std::shared_ptr<MemoryBucket> bucket_ = std::make_shared<MemoryBucket>();
};

}  // namespace

std::unique_ptr<Storage> Storage::Make(StorageKind kind) {
  switch (kind) {
    case StorageKind::kDirectory:
      return std::make_unique<DirectoryStorage>(std::nullopt);
    case StorageKind::kSealedDirectory:
      return std::make_unique<DirectoryStorage>(*ObjectKey::Parse(std::string(64, 'a')));
    case StorageKind::kBucket:
      break;
  }
  return std::make_unique<BucketStorage>();
}

std::string NameOfKind(StorageKind kind) {
  constexpr const char* kNames[] = {"Directory", "SealedDirectory", "Bucket"};
  return kNames[static_cast<size_t>(kind)];
}

}  // namespace crout::testing
