// SPDX-License-Identifier: Apache-2.0

#include "client/c/error.h"

#include <algorithm>
#include <cstring>

#include "crout/status.h"

namespace crout::c {
namespace {

// Uses no heap memory, because it also records CROUT_OUT_OF_MEMORY.
struct LastError {
  crout_code code = CROUT_OK;
  char text[1024] = "";
};

LastError& ThreadLastError() {
  thread_local LastError last;
  return last;
}

crout_code CodeOf(const absl::Status& status) {
  if (IsUnreachable(status)) return CROUT_UNREACHABLE;
  if (Reason(status) == "SINGULAR_MATRIX") return CROUT_SINGULAR;
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return CROUT_OK;
    case absl::StatusCode::kInvalidArgument:
      return CROUT_INVALID_ARGUMENT;
    case absl::StatusCode::kNotFound:
      return CROUT_NOT_FOUND;
    case absl::StatusCode::kFailedPrecondition:
      return CROUT_FAILED_PRECONDITION;
    case absl::StatusCode::kUnavailable:
      return CROUT_UNAVAILABLE;
    case absl::StatusCode::kAborted:
      return CROUT_ABORTED;
    case absl::StatusCode::kResourceExhausted:
      return CROUT_RESOURCE_EXHAUSTED;
    case absl::StatusCode::kDeadlineExceeded:
      return CROUT_DEADLINE_EXCEEDED;
    case absl::StatusCode::kCancelled:
      return CROUT_CANCELLED;
    case absl::StatusCode::kUnimplemented:
      return CROUT_UNIMPLEMENTED;
    case absl::StatusCode::kUnauthenticated:
      return CROUT_UNAUTHENTICATED;
    case absl::StatusCode::kPermissionDenied:
      return CROUT_PERMISSION_DENIED;
    default:
      return CROUT_INTERNAL;
  }
}

}  // namespace

crout_code Fail(crout_code code, absl::string_view text) noexcept {
  LastError& last = ThreadLastError();
  last.code = code;
  const size_t length = std::min(text.size(), sizeof last.text - 1);
  // `text` may be the last error's own text.
  std::memmove(last.text, text.data(), length);
  last.text[length] = '\0';
  std::replace(last.text, last.text + length, '\n', ' ');
  return code;
}

crout_code ToCode(const absl::Status& status) noexcept {
  if (status.ok()) return CROUT_OK;
  // Guarded, because reading the server's details allocates memory.
  return Guarded([&] { return Fail(CodeOf(status), status.message()); });
}

int64_t IllegalArgument(int position, absl::string_view text) noexcept {
  Fail(CROUT_INVALID_ARGUMENT, text);
  return -position;
}

}  // namespace crout::c

crout_code crout_last_error_code(void) { return crout::c::ThreadLastError().code; }
const char* crout_last_error(void) { return crout::c::ThreadLastError().text; }
