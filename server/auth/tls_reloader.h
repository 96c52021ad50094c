// SPDX-License-Identifier: Apache-2.0

// Keeps the last valid contents of the TLS files and publishes them to gRPC.
#ifndef CROUT_SERVER_AUTH_TLS_RELOADER_H_
#define CROUT_SERVER_AUTH_TLS_RELOADER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/auth/setting_file.h"
#include "server/auth/tls_files.h"

namespace crout {

// gRPC's file watcher loads any file, even a half-written one, and then accepts no connection until
// the files are valid again. gRPC therefore reads copies in memory (memfd_create(2)). The copies
// change only when all files are valid. They are never written to disk, and processes of other
// users cannot read them.
//
// Not thread-safe. Must outlive the credentials made from published().
class TlsReloader {
 public:
  // Returns the errors of CheckTlsFiles(); INTERNAL if the system cannot create the copies.
  static absl::StatusOr<std::unique_ptr<TlsReloader>> Create(const TlsFiles& files);
  ~TlsReloader();
  TlsReloader(const TlsReloader&) = delete;  // Each object owns its descriptors.
  TlsReloader& operator=(const TlsReloader&) = delete;

  // Returns the paths of the copies, valid in this process. Without TLS, all paths are empty.
  TlsFiles published() const;

  // Reads the files and publishes them if they are valid and have changed. Logs each reload and
  // each refusal with its reason; a repeated refusal is logged once. Returns true if new contents
  // were published.
  bool Refresh();

  // The contents in use.
  const TlsContents& contents() const { return contents_; }

  FileState state() const { return state_; }
  // Validity period of the certificate in use.
  absl::Time begin() const { return contents_.begin; }
  absl::Time end() const { return contents_.end; }

 private:
  explicit TlsReloader(const TlsFiles& files) : files_(files) {}
  absl::Status Publish(TlsContents contents);

  const TlsFiles files_;
  TlsContents contents_;
  int identity_ = -1;  // descriptors of the copies; -1: none
  int roots_ = -1;
  int64_t version_ = 0;
  std::string last_error_;  // last logged error of the files; "" if they are valid
  FileState state_;
};

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TLS_RELOADER_H_
