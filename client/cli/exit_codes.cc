// SPDX-License-Identifier: Apache-2.0

#include "client/cli/exit_codes.h"

#include <cstring>

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "crout/status.h"

namespace crout::cli {
namespace {

constexpr ExitCode kExitCodes[] = {
    {kFailed, "failed in a way that has no code of its own"},
    {kBadUsage, "bad usage: the command line makes no sense"},
    {kUnreachable, "no server answered"},
    {kSingular, "the matrix is singular, where --fail-singular asked for it"},
    {kNotFound, "NOT_FOUND: no such factor; its lease may have ended"},
    {kInvalidArgument, "INVALID_ARGUMENT: the server refuses the input, whatever its state"},
    {kFailedPrecondition, "FAILED_PRECONDITION: not with this factor, such as a singular one"},
    {kResourceExhausted, "RESOURCE_EXHAUSTED: queue or memory is full; later again"},
    {kUnavailable, "UNAVAILABLE: the server answers that it cannot serve now"},
    {kDeadlineExceeded, "DEADLINE_EXCEEDED: --timeout, or the server's patience"},
    {kUnimplemented, "UNIMPLEMENTED: this server or device does not offer that"},
    {kAborted, "ABORTED: an iterative method came to its limit of sweeps"},
    {kFile, "a file, or standard input or output, cannot be read or written"},
    {kUnauthenticated, "UNAUTHENTICATED: the server does not know who calls; see --token-file"},
    {kPermissionDenied, "PERMISSION_DENIED: who calls may not do that, or not as this tenant"},
    {kNotAccurate, "X was written, but its backward error is not accepted or it is not finite"},
};

// Marks statuses about local files.
constexpr char kFileErrorUrl[] = "crout.cli.FileError";

}  // namespace

absl::Span<const ExitCode> ExitCodes() { return kExitCodes; }

std::string ExitCodesHelp() {
  std::string text = "Exit codes:\n   0  done\n";
  for (const ExitCode& code : kExitCodes) {
    absl::StrAppendFormat(&text, "  %2d  %s\n", code.code, code.meaning);
  }
  text.pop_back();
  return text;
}

absl::Status FileError(absl::string_view text) {
  absl::Status status = absl::UnknownError(text);
  status.SetPayload(kFileErrorUrl, absl::Cord());
  return status;
}

absl::Status FileErrnoError(int error_number, absl::string_view text) {
  return FileError(absl::StrCat(text, ": ", std::strerror(error_number)));
}

bool IsFileError(const absl::Status& status) {
  return status.GetPayload(kFileErrorUrl).has_value();
}

int ExitCodeOf(const absl::Status& status) {
  if (status.ok()) return 0;
  if (IsFileError(status)) return kFile;
  if (client::IsUnreachable(status)) return kUnreachable;
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
      return kNotFound;
    case absl::StatusCode::kInvalidArgument:
      return kInvalidArgument;
    case absl::StatusCode::kFailedPrecondition:
      return kFailedPrecondition;
    case absl::StatusCode::kResourceExhausted:
      return kResourceExhausted;
    case absl::StatusCode::kUnavailable:
      return kUnavailable;
    case absl::StatusCode::kDeadlineExceeded:
      return kDeadlineExceeded;
    case absl::StatusCode::kUnimplemented:
      return kUnimplemented;
    case absl::StatusCode::kAborted:
      return kAborted;
    case absl::StatusCode::kUnauthenticated:
      return kUnauthenticated;
    case absl::StatusCode::kPermissionDenied:
      return kPermissionDenied;
    default:
      return kFailed;
  }
}

std::string ErrorName(const absl::Status& status) {
  if (IsFileError(status)) return "FILE";
  if (client::IsUnreachable(status)) return "UNREACHABLE";
  return absl::StatusCodeToString(status.code());
}

}  // namespace crout::cli
