// SPDX-License-Identifier: Apache-2.0

// The address of a bucket, and the credentials for it.
#ifndef CROUT_SERVER_S3_SETTINGS_H_
#define CROUT_SERVER_S3_SETTINGS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace crout {

struct S3Credentials {
  std::string access_key;
  std::string secret_key;
  std::string session_token;  // empty for keys that do not expire
};

struct S3Settings {
  std::string endpoint = {};  // "https://host" or "https://host:port"
  std::string region = {};    // "us-east-1"
  std::string bucket = {};
  // Sends the bucket in the path ("https://host/bucket/key"), not in the name of the host.
  bool path_style = false;
  // Permits "http://" for hosts other than this machine. Anyone on the network can then read and
  // change the objects in transit.
  bool allow_plain_http = false;
  std::string ca_file = {};  // PEM file of authorities; empty: the authorities of the system
  S3Credentials credentials = {};
};

// INVALID_ARGUMENT or FAILED_PRECONDITION, with the fix, if a setting is not possible.
absl::Status CheckS3Settings(const S3Settings& settings);

// Returns the credentials in AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN. If
// these are not set, reads the section AWS_PROFILE ("default") of the file
// AWS_SHARED_CREDENTIALS_FILE ("~/.aws/credentials"), to which other users must have no access.
// FAILED_PRECONDITION, with the fix, if there are none.
absl::StatusOr<S3Credentials> FindS3Credentials();

// Returns the credentials in the section `profile` of a credentials file. `text` may be hostile.
// FAILED_PRECONDITION if the section or one of its keys is missing.
absl::StatusOr<S3Credentials> ParseS3Credentials(std::string_view text, std::string_view profile);

}  // namespace crout

#endif  // CROUT_SERVER_S3_SETTINGS_H_
