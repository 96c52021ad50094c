// SPDX-License-Identifier: Apache-2.0

// Files whose contents are encrypted (ObjectCipher). Memory of about 1 MiB is used for each call.
#ifndef CROUT_SERVER_ENGINE_STORE_SEALED_FILE_H_
#define CROUT_SERVER_ENGINE_STORE_SEALED_FILE_H_

#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/store/file_io.h"
#include "server/engine/store/object_cipher.h"
#include "server/engine/store/object_store.h"

namespace crout {

// Appends the sealed contents to an empty file. `name` is the one with which the file is opened.
absl::Status WriteSealed(const OpenFile& file, const ObjectKey& key, std::string_view name,
                         ObjectBytes contents);

// Returns the contents of a sealed file. Errors are those of ObjectCipher and of `sealed`. Each
// read decrypts whole blocks.
absl::StatusOr<std::unique_ptr<ObjectReader>> OpenSealed(std::unique_ptr<ObjectReader> sealed,
                                                         const ObjectKey& key,
                                                         std::string_view name);

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_SEALED_FILE_H_
