// SPDX-License-Identifier: Apache-2.0

// Opens the storage of the factor store that the settings name.
#ifndef CROUT_SERVER_STORAGE_H_
#define CROUT_SERVER_STORAGE_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/config.h"
#include "server/engine/store/object_store.h"
#include "server/replicas/shared_store.h"

namespace crout {

struct S3Location {
  std::string bucket;
  std::string prefix;  // starts all keys; empty, or ends with "/"
};

// Parses s3://BUCKET/PREFIX. Returns nullopt for a directory. INVALID_ARGUMENT if the bucket or the
// prefix is not possible.
absl::StatusOr<std::optional<S3Location>> ParseS3Location(std::string_view location);

struct Storage {
  std::unique_ptr<ObjectStore> objects;
  SharedStore* shared = nullptr;  // `objects`, if it is a bucket
};

// Opens config.store_location, which is not empty. Waits until the folders of a killed daemon of
// the same name may be adopted.
absl::StatusOr<Storage> OpenStorage(const Config& config);

}  // namespace crout

#endif  // CROUT_SERVER_STORAGE_H_
