// SPDX-License-Identifier: Apache-2.0

// Exit codes of croutctl. Scripts depend on them: the meaning of a code never changes.
#ifndef CROUT_CLIENT_CLI_EXIT_CODES_H_
#define CROUT_CLIENT_CLI_EXIT_CODES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace crout::cli {

inline constexpr int kFailed = 1;
inline constexpr int kBadUsage = 2;
inline constexpr int kUnreachable = 3;
inline constexpr int kSingular = 10;
inline constexpr int kNotFound = 11;
inline constexpr int kInvalidArgument = 12;
inline constexpr int kFailedPrecondition = 13;
inline constexpr int kResourceExhausted = 14;
inline constexpr int kUnavailable = 15;
inline constexpr int kDeadlineExceeded = 16;
inline constexpr int kUnimplemented = 17;
inline constexpr int kAborted = 18;
inline constexpr int kFile = 19;
inline constexpr int kUnauthenticated = 20;
inline constexpr int kPermissionDenied = 21;
inline constexpr int kNotAccurate = 22;

struct ExitCode {
  int code;
  const char* meaning;
};
// All codes except 0, in ascending order.
absl::Span<const ExitCode> ExitCodes();

// The last section of the help of croutctl.
std::string ExitCodesHelp();

// An error on a local file, or on standard input or output; exits with kFile.
absl::Status FileError(absl::string_view text);
// Like FileError, followed by the message for `error_number`.
absl::Status FileErrnoError(int error_number, absl::string_view text);
bool IsFileError(const absl::Status& status);

// Exit code of a command with this status; 0 for OK.
int ExitCodeOf(const absl::Status& status);

// Name of an error: "NOT_FOUND", ...; "UNREACHABLE" if no server answered; "FILE" for a FileError.
std::string ErrorName(const absl::Status& status);

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_EXIT_CODES_H_
