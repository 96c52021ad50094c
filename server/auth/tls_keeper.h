// SPDX-License-Identifier: Apache-2.0

// The last good contents of the TLS files, for gRPC to take from.
#ifndef CROUT_SERVER_AUTH_TLS_KEEPER_H_
#define CROUT_SERVER_AUTH_TLS_KEEPER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/setting_file.h"
#include "server/auth/tls_files.h"

namespace crout {

// gRPC's watcher of files takes what it finds, a half-written file too, and serves nobody until it
// finds better. It is therefore shown copies in memory (memfd_create(2)), which change only when
// the files are good, and all at once: they reach no disk and no other process of another user.
// Not thread-safe. Outlives the credentials made of published().
class TlsKeeper {
 public:
  // As CheckTlsFiles(); INTERNAL where the system gives no memory.
  static absl::StatusOr<std::unique_ptr<TlsKeeper>> Create(const TlsFiles& files);
  ~TlsKeeper();
  TlsKeeper(const TlsKeeper&) = delete;  // The descriptors are this object's.
  TlsKeeper& operator=(const TlsKeeper&) = delete;

  // Paths of the copies, good in this process; as little enabled as the files are.
  TlsFiles published() const;

  // Reads the files; takes what has changed, if it is good. What was taken, and what was not and
  // why, gets a line in the log, the same once. Returns whether anything was taken.
  bool Refresh();

  // What is in use.
  const TlsContents& contents() const { return contents_; }

  FileStanding standing() const { return standing_; }
  // The time of the certificate in use.
  absl::Time begin() const { return contents_.begin; }
  absl::Time end() const { return contents_.end; }

 private:
  explicit TlsKeeper(const TlsFiles& files) : files_(files) {}
  absl::Status Publish(TlsContents contents);

  const TlsFiles files_;
  TlsContents contents_;
  int identity_ = -1;  // descriptors; -1: none
  int roots_ = -1;
  int64_t version_ = 0;
  std::string complaint_;  // that the log has, of files as they are
  FileStanding standing_;
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TLS_KEEPER_H_
