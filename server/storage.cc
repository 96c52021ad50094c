// SPDX-License-Identifier: Apache-2.0

#include "server/storage.h"

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/auth/setting_file.h"
#include "server/engine/store/directory_store.h"
#include "server/s3/client.h"

namespace crout {
namespace {

constexpr char kKeyFlag[] = "--store-key-file";
constexpr absl::string_view kScheme = "s3://";
// S3Client permits keys of 512 characters; those below the prefix have fewer than 200.
constexpr size_t kMaxPrefix = 300;

// Reads the key that seals files. Returns nothing without a file.
absl::StatusOr<std::optional<ObjectKey>> ReadStoreKey(const std::string& path) {
  if (path.empty()) return std::nullopt;
  const SettingFile file{kKeyFlag, path};
  CROUT_ASSIGN_OR_RETURN(const std::string text, ReadSettingFile(file, FileAccess::kPrivate));
  absl::StatusOr<ObjectKey> key = ObjectKey::Parse(text);
  if (!key.ok()) return file.Refuse(key.status().message());
  return *std::move(key);
}

}  // namespace

absl::StatusOr<std::optional<S3Location>> ParseS3Location(std::string_view location) {
  absl::string_view rest = ToAbsl(location);
  if (!absl::ConsumePrefix(&rest, kScheme)) {
    if (!absl::StrContains(rest, "://")) return std::nullopt;
    return absl::InvalidArgumentError(
        absl::StrCat("'", rest, "' is neither a directory nor s3://BUCKET/PREFIX"));
  }
  const size_t slash = rest.find('/');
  S3Location parsed{std::string(rest.substr(0, slash)), ""};
  if (slash != absl::string_view::npos) {
    parsed.prefix = std::string(absl::StripSuffix(rest.substr(slash + 1), "/"));
  }
  if (parsed.bucket.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", ToAbsl(location), "' names no bucket: write it like s3://BUCKET/PREFIX"));
  }
  if (parsed.prefix.empty()) return parsed;
  if (parsed.prefix.size() > kMaxPrefix || !IsS3Key(parsed.prefix)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the prefix '", parsed.prefix, "' is not valid. Use at most ", kMaxPrefix,
                     " letters, digits and - _ . / in segments that are not empty"));
  }
  parsed.prefix += '/';
  return parsed;
}

absl::StatusOr<Storage> OpenStorage(const Config& config) {
  Storage storage;
  CROUT_ASSIGN_OR_RETURN(const std::optional<S3Location> location,
                         ParseS3Location(config.store_location));
  CROUT_ASSIGN_OR_RETURN(const std::optional<ObjectKey> key, ReadStoreKey(config.store_key_file));
  if (!location) {
    CROUT_ASSIGN_OR_RETURN(storage.objects, DirectoryStore::Open(config.store_location, key));
    return storage;
  }
  if (key) {
    return absl::FailedPreconditionError(absl::StrCat(
        kKeyFlag, " encrypts directories only: turn on the encryption of the bucket instead"));
  }
  S3Settings settings = config.s3;
  settings.bucket = location->bucket;
  if (settings.endpoint.empty()) {
    settings.endpoint = absl::StrCat("https://s3.", settings.region, ".amazonaws.com");
  }
  CROUT_ASSIGN_OR_RETURN(settings.credentials, FindS3Credentials());
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<S3Client> client, S3Client::Create(std::move(settings)));
  CROUT_ASSIGN_OR_RETURN(
      std::unique_ptr<SharedStore> store,
      SharedStore::Open(std::move(client),
                        {.prefix = location->prefix,
                         .name = config.replica_name,
                         .duration = absl::ToChronoMilliseconds(config.store_lease)}));
  storage.shared = store.get();
  storage.objects = std::move(store);
  return storage;
}

}  // namespace crout
