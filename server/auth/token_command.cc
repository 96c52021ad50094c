// SPDX-License-Identifier: Apache-2.0

#include "server/auth/token_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "kernels/util/duration.h"
#include "kernels/util/status_macros.h"
#include "server/auth/identities.h"
#include "server/auth/token.h"

namespace crout {
namespace {

constexpr int kExitFailure = 1;
constexpr int kUsageError = 2;

struct Options {
  std::string identity;
  std::string token_file;
  std::string valid_for = "inf";
};

// Fails if the file exists: it may hold a token in use.
absl::Status WriteNewFile(const std::string& path, const std::string& text) {
  const auto failed = [&path](const char* what) {
    return absl::InternalError(
        absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(errno)));
  };
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return failed("create");
  const bool written = write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool closed = close(fd) == 0;
  return written && closed ? absl::OkStatus() : failed("write");
}

absl::Status CreateToken(const Options& options) {
  CROUT_ASSIGN_OR_RETURN(const std::string token, MakeToken());
  std::string line = absl::StrCat("token = ", FormatTokenHash(HashToken(token)));
  const absl::Duration valid_for = *DurationFrom(options.valid_for);  // already validated
  if (valid_for != absl::InfiniteDuration()) {
    absl::StrAppend(
        &line, " until ",
        absl::FormatTime("%Y-%m-%d%ET%H:%M:%SZ", absl::Now() + valid_for, absl::UTCTimeZone()));
  }
  if (options.token_file.empty()) {
    std::cout << "# token of " << options.identity << ", shown only once:\n" << token << "\n";
  } else {
    CROUT_RETURN_IF_ERROR(WriteNewFile(options.token_file, token + "\n"));
  }
  std::cout << "# for the --identities file, under [" << options.identity << "]:\n"
            << line << std::endl;
  return std::cout ? absl::OkStatus() : absl::InternalError("cannot write to standard output");
}

std::string CheckIdentity(const std::string& name) {
  return IsPrincipalName(name)
             ? ""
             : "'" + name + "' is not a name of 1 to 64 characters of [A-Za-z0-9_.-]";
}

std::string CheckValidFor(const std::string& text) {
  constexpr absl::Duration kLongest = absl::Hours(24 * 365 * 100);
  const std::optional<absl::Duration> duration = DurationFrom(text);
  const bool good = duration && *duration > absl::ZeroDuration() &&
                    (*duration <= kLongest || *duration == absl::InfiniteDuration());
  return good ? "" : "'" + text + "' is not a duration above 0; write it like 90d";
}

}  // namespace

int RunTokenCommand(int argc, char** argv) {
  CLI::App app("Create bearer tokens that authenticate callers.", "croutd token");
  app.require_subcommand(1);
  Options options;
  CLI::App* const create =
      app.add_subcommand("create", "Create a token and its line for the --identities file.");
  create->footer(
      "Examples:\n  croutd token create --identity=alice\n"
      "  croutd token create --identity=alice --token-file=alice.token --valid-for=90d");
  create
      ->add_option("--identity", options.identity,
                   "Identity of the token: 1 to 64 characters of [A-Za-z0-9_.-]")
      ->required()
      ->check(CheckIdentity);
  create->add_option("--token-file", options.token_file,
                     "Write the token to this new file (mode 600) instead of standard output");
  create
      ->add_option("--valid-for", options.valid_for,
                   "Lifetime of the token, such as 90d; inf: no end")
      ->capture_default_str()
      ->check(CheckValidFor);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kUsageError;
  }
  const absl::Status status = CreateToken(options);
  if (status.ok()) return 0;
  std::cerr << "croutd token: " << status.message() << "\n";
  return kExitFailure;
}

}  // namespace crout
