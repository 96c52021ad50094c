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
    {kFailed, "any other failure"},
    {kBadUsage, "invalid command line, or an input file that does not exist"},
    {kUnreachable, "UNREACHABLE: no server answered at --server"},
    {kSingular, "the matrix is singular, and --fail-singular was given"},
    {kNotFound, "NOT_FOUND: no such factor; its lease may have expired"},
    {kInvalidArgument, "INVALID_ARGUMENT: invalid input, option, token file or certificate file"},
    {kFailedPrecondition,
     "FAILED_PRECONDITION: not possible with this factor, such as a singular one"},
    {kResourceExhausted, "RESOURCE_EXHAUSTED: the queue or the memory is full; retry later"},
    {kUnavailable, "UNAVAILABLE: the server cannot serve the call now; retry later"},
    {kDeadlineExceeded, "DEADLINE_EXCEEDED: --timeout or a time limit of the server has passed"},
    {kUnimplemented, "UNIMPLEMENTED: the server or device does not support the operation"},
    {kAborted, "ABORTED: --sweep-limit was reached, or the --request-id is in use"},
    {kFile, "FILE: a file, standard input or standard output cannot be read or written"},
    {kUnauthenticated, "UNAUTHENTICATED: no valid credentials; see --token-file"},
    {kPermissionDenied, "PERMISSION_DENIED: the caller lacks the role, or may not use this tenant"},
    {kNotAccurate, "the output was written, but it is not accurate: see the warning"},
};

// Marks statuses about local files.
constexpr char kFileErrorUrl[] = "crout.cli.FileError";

}  // namespace

absl::Span<const ExitCode> ExitCodes() { return kExitCodes; }

std::string ExitCodesHelp() {
  std::string text = "Exit codes:\n   0  success\n";
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
  if (IsUnreachable(status)) return kUnreachable;
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
  if (IsUnreachable(status)) return "UNREACHABLE";
  return absl::StatusCodeToString(status.code());
}

}  // namespace crout::cli
