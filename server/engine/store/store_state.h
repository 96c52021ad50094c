// SPDX-License-Identifier: Apache-2.0

// The state of the factor store, for metrics and replies.
#ifndef CROUT_SERVER_ENGINE_STORE_STORE_STATE_H_
#define CROUT_SERVER_ENGINE_STORE_STORE_STATE_H_

#include <cstdint>
#include <optional>
#include <string>

namespace crout {

// Folders of a store that several daemons share.
struct FolderCounts {
  int64_t owned = 0;
  int64_t adopted = 0;  // from other daemons, since the start of the process
  int64_t lost = 0;     // to other daemons, since the start of the process
};

struct StoreState {
  int64_t limit_bytes = 0;
  int64_t used_bytes = 0;   // size of all files, in blocks of the file system
  bool degraded = false;    // the last write failed
  std::string reason;       // the error of the last write; empty unless degraded
  int64_t quarantined = 0;  // damaged files in the quarantine
  int64_t unusable = 0;     // other files that are charged but hold no usable factor
  // Since the start of the process.
  int64_t written_bytes = 0;  // size of completed files
  int64_t read_bytes = 0;     // size of parts
  int64_t failed_writes = 0;
  int64_t failed_reads = 0;                            // damaged files do not count
  std::optional<FolderCounts> folders = std::nullopt;  // unset: no other daemon shares the store
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_STORE_STORE_STATE_H_
