// SPDX-License-Identifier: Apache-2.0

#include "server/auth/tls_reloader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "kernels/util/status_macros.h"
#include "server/observability/log/log.h"

namespace crout {
namespace {

absl::Status SystemError(const char* call) {
  return absl::InternalError(absl::StrCat("TLS: ", call, ": ", std::strerror(errno)));
}

// Points `*fd` to a new in-memory file with `text`. If `*fd` is open, its number does not change.
// The modification time of the file is `version` seconds: gRPC compares it to detect changes while
// it reads.
absl::Status Replace(const std::string& text, int64_t version, int* fd) {
  const int next = memfd_create("crout-tls", MFD_CLOEXEC);
  if (next < 0) return SystemError("memfd_create");
  const timespec time = {.tv_sec = version, .tv_nsec = 0};
  const timespec times[2] = {time, time};
  const bool written = write(next, text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
                       futimens(next, times) == 0;
  if (written && *fd < 0) {
    *fd = next;
    return absl::OkStatus();
  }
  const bool replaced = written && dup3(next, *fd, O_CLOEXEC) >= 0;
  absl::Status status =
      replaced ? absl::OkStatus() : SystemError("cannot replace the copy of a TLS file in memory");
  close(next);
  return status;
}

std::string PathOf(int fd) { return fd < 0 ? "" : absl::StrCat("/proc/self/fd/", fd); }

}  // namespace

absl::StatusOr<std::unique_ptr<TlsReloader>> TlsReloader::Create(const TlsFiles& files) {
  CROUT_ASSIGN_OR_RETURN(TlsContents contents, ReadTlsFiles(files));
  std::unique_ptr<TlsReloader> reloader(new TlsReloader(files));
  CROUT_RETURN_IF_ERROR(reloader->Publish(std::move(contents)));
  return reloader;
}

TlsReloader::~TlsReloader() {
  for (const int fd : {identity_, roots_}) {
    if (fd >= 0) close(fd);
  }
}

// The key and the certificates share one file, so that a reader never gets different versions of
// them.
TlsFiles TlsReloader::published() const {
  return {.certificate = PathOf(identity_),
          .key = PathOf(identity_),
          .client_ca = PathOf(roots_),
          .client_certificates = files_.client_certificates};
}

absl::Status TlsReloader::Publish(TlsContents contents) {
  ++version_;
  if (contents.roots != contents_.roots) {
    CROUT_RETURN_IF_ERROR(Replace(contents.roots, version_, &roots_));
    contents_.roots = std::move(contents.roots);
  }
  if (contents.identity != contents_.identity) {
    CROUT_RETURN_IF_ERROR(Replace(contents.identity, version_, &identity_));
    contents_.identity = std::move(contents.identity);
  }
  contents_.begin = contents.begin;
  contents_.end = contents.end;
  state_.read_time = absl::Now();
  return absl::OkStatus();
}

bool TlsReloader::Refresh() {
  absl::StatusOr<TlsContents> found = ReadTlsFiles(files_);
  absl::Status status = found.status();
  const bool changed = status.ok() && *found != contents_;
  if (changed) {
    status = Publish(*std::move(found));
    if (status.ok())
      Log(LogLevel::kInfo, "tls_files_reloaded", {{"certificate", files_.certificate}});
  }
  const std::string last_error(status.message());
  if (!status.ok() && last_error != last_error_) {
    Log(LogLevel::kError, "tls_files_refused",
        {{"reason", last_error}, {"in_use", "the last valid contents"}});
  }
  last_error_ = last_error;
  state_.refused = !status.ok();
  return changed && status.ok();
}

}  // namespace crout
