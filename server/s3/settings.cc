// SPDX-License-Identifier: Apache-2.0

#include "server/s3/settings.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/auth/setting_file.h"

namespace crout {
namespace {

bool AllOf(std::string_view text, bool (*is_allowed)(char)) {
  return std::ranges::all_of(text, is_allowed);
}

// S3's rules for names of buckets; all such names are also names of hosts.
bool IsBucket(std::string_view name) {
  return name.size() >= 3 && name.size() <= 63 && name.front() != '-' && name.back() != '-' &&
         name.front() != '.' && name.back() != '.' && name.find("..") == std::string_view::npos &&
         AllOf(name, [](char c) {
           return absl::ascii_islower(static_cast<unsigned char>(c)) ||
                  absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '-' || c == '.';
         });
}

// `host` is normalized by libcurl.
bool IsLoopback(std::string_view host) {
  const bool is_ipv4 = AllOf(
      host, [](char c) { return absl::ascii_isdigit(static_cast<unsigned char>(c)) || c == '.'; });
  return host == "localhost" || host == "[::1]" || (is_ipv4 && host.starts_with("127."));
}

// Keys and tokens become parts of headers and must not end their line.
bool IsSecret(std::string_view text) {
  return text.size() <= 4096 &&
         AllOf(text, [](char c) { return absl::ascii_isgraph(static_cast<unsigned char>(c)); });
}

struct FreeUrl {
  void operator()(CURLU* url) const { curl_url_cleanup(url); }
};
struct FreeText {
  void operator()(char* text) const { curl_free(text); }
};

// Returns a part of an URL; empty if it is missing.
std::string PartOf(CURLU* url, CURLUPart part) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, 0) != CURLUE_OK) return "";
  const std::unique_ptr<char, FreeText> owner(text);
  return text;
}

absl::Status CheckEndpoint(const S3Settings& settings) {
  const auto refuse = [&](absl::string_view why) {
    return absl::InvalidArgumentError(
        absl::StrCat("the endpoint of the object store ", why,
                     ". Set https://host or https://host:port, without a path"));
  };
  const std::unique_ptr<CURLU, FreeUrl> url(curl_url());
  if (url == nullptr) return absl::ResourceExhaustedError("no memory to parse an URL");
  if (curl_url_set(url.get(), CURLUPART_URL, settings.endpoint.c_str(), 0) != CURLUE_OK)
    return refuse("is not an URL");
  const std::string scheme = PartOf(url.get(), CURLUPART_SCHEME);
  if (scheme != "https" && scheme != "http") return refuse("has another scheme than https");
  for (const CURLUPart part : {CURLUPART_USER, CURLUPART_PASSWORD, CURLUPART_OPTIONS,
                               CURLUPART_QUERY, CURLUPART_FRAGMENT, CURLUPART_ZONEID}) {
    if (!PartOf(url.get(), part).empty()) return refuse("has more than a host and a port");
  }
  if (PartOf(url.get(), CURLUPART_PATH) != "/" || settings.endpoint.ends_with('/'))
    return refuse("has a path");
  if (scheme == "http" && !settings.allow_plain_http &&
      !IsLoopback(PartOf(url.get(), CURLUPART_HOST))) {
    return absl::FailedPreconditionError(
        "the endpoint of the object store is http:// on another machine, and its network could "
        "read and change factors. Use https://, or allow plain HTTP");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckS3Settings(const S3Settings& settings) {
  CROUT_RETURN_IF_ERROR(CheckEndpoint(settings));
  if (!IsBucket(settings.bucket)) {
    return absl::InvalidArgumentError(
        "the name of the bucket is not valid. Use 3 to 63 lower-case letters, digits, hyphens and "
        "periods");
  }
  if (!settings.path_style && absl::StrContains(settings.bucket, '.')) {
    return absl::InvalidArgumentError(
        "the name of the bucket has a period, and the certificate of the object store does not "
        "cover such a host. Use path-style addresses");
  }
  const auto is_region = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
  };
  if (settings.region.empty() || settings.region.size() > 64 ||
      !AllOf(settings.region, is_region)) {
    return absl::InvalidArgumentError(
        "the region of the object store must be 1 to 64 letters, digits and hyphens, such as "
        "us-east-1");
  }
  const S3Credentials& keys = settings.credentials;
  if (keys.access_key.empty() || keys.secret_key.empty() || !IsSecret(keys.access_key) ||
      !IsSecret(keys.secret_key) || !IsSecret(keys.session_token) ||
      absl::StrContains(keys.access_key, ':')) {
    return absl::InvalidArgumentError(
        "the credentials of the object store are empty, or have more than 4096 bytes or other "
        "characters than printable ASCII. Check the access key, its secret and the token");
  }
  return absl::OkStatus();
}

absl::StatusOr<S3Credentials> ParseS3Credentials(std::string_view text, std::string_view profile) {
  S3Credentials found;
  bool inside = false;
  bool present = false;
  for (absl::string_view line : absl::StrSplit(ToAbsl(text), '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line.front() == '#' || line.front() == ';') continue;
    if (line.front() == '[') {
      inside = line.back() == ']' &&
               absl::StripAsciiWhitespace(line.substr(1, line.size() - 2)) == ToAbsl(profile);
      present |= inside;
      continue;
    }
    const size_t equals = line.find('=');
    if (!inside || equals == absl::string_view::npos) continue;
    const absl::string_view key = absl::StripAsciiWhitespace(line.substr(0, equals));
    const absl::string_view value = absl::StripAsciiWhitespace(line.substr(equals + 1));
    if (key == "aws_access_key_id") found.access_key = std::string(value);
    if (key == "aws_secret_access_key") found.secret_key = std::string(value);
    if (key == "aws_session_token") found.session_token = std::string(value);
  }
  if (!present) {
    return absl::FailedPreconditionError(
        "the file of S3 credentials has no section of the profile. Set AWS_PROFILE to one of its "
        "sections");
  }
  if (found.access_key.empty() || found.secret_key.empty()) {
    return absl::FailedPreconditionError(
        "the profile in the file of S3 credentials lacks a key. Add aws_access_key_id and "
        "aws_secret_access_key");
  }
  return found;
}

absl::StatusOr<S3Credentials> FindS3Credentials() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  S3Credentials keys{variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY"),
                     variable("AWS_SESSION_TOKEN")};
  if (keys.access_key.empty() != keys.secret_key.empty()) {
    return absl::FailedPreconditionError(
        "only one of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY is set. Set both");
  }
  if (!keys.access_key.empty()) return keys;
  std::string path = variable("AWS_SHARED_CREDENTIALS_FILE");
  if (path.empty()) {
    const std::string home = variable("HOME");
    if (home.empty()) {
      return absl::FailedPreconditionError(
          "there are no S3 credentials. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
          "AWS_SHARED_CREDENTIALS_FILE");
    }
    path = absl::StrCat(home, "/.aws/credentials");
  }
  CROUT_ASSIGN_OR_RETURN(
      const std::string text,
      ReadSettingFile(SettingFile{"AWS_SHARED_CREDENTIALS_FILE", path}, FileAccess::kPrivate));
  const std::string profile = variable("AWS_PROFILE");
  return ParseS3Credentials(text, profile.empty() ? "default" : profile);
}

}  // namespace crout
