// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/servers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"

namespace crout {
inline namespace api {
namespace {

constexpr size_t kMaxNameLength = 64;
// Largest number of bytes of an error's reason, which may quote the file.
constexpr size_t kMaxReasonLength = 400;

std::string Variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

bool IsServerName(absl::string_view text) {
  return !text.empty() && text.size() <= kMaxNameLength &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isalnum(c) || c == '_' || c == '.' || c == '-';
         });
}

// Sets the fields that are unset in `options` to those of `from`.
void FillUnset(const ClientOptions& from, ClientOptions* options) {
  const auto fill = [](const std::string& value, std::string* to) {
    if (to->empty()) *to = value;
  };
  fill(from.tenant, &options->tenant);
  if (options->token.empty()) fill(from.token_file, &options->token_file);
  if (!from.tls) return;
  if (!options->tls) options->tls.emplace();
  fill(from.tls->ca_file, &options->tls->ca_file);
  fill(from.tls->server_name, &options->tls->server_name);
  // A certificate and its key come from the same source.
  if (!options->tls->cert_file.empty() || !options->tls->key_file.empty()) return;
  options->tls->cert_file = from.tls->cert_file;
  options->tls->key_file = from.tls->key_file;
}

// Reads the text of a file of servers, which is a subset of TOML: lines with [name], key = "value"
// or key = true.
class Reader {
 public:
  Reader(const std::string& path, absl::string_view name)
      : directory_(path.substr(0, path.rfind('/') + 1)), path_(path), name_(name) {}

  absl::StatusOr<ClientOptions> Read(absl::string_view text) {
    for (const absl::string_view line : absl::StrSplit(text, '\n')) {
      ++line_;
      if (absl::Status status = Take(absl::StripAsciiWhitespace(line)); !status.ok()) return status;
    }
    if (absl::Status status = EndSection(); !status.ok()) return status;
    if (found_) return std::move(options_);
    return absl::NotFoundError(
        absl::StrCat("no server '", name_, "' in ", path_, " (it has ",
                     sections_.empty() ? "none" : absl::StrJoin(sections_, ", "), ")"));
  }

 private:
  absl::Status Refuse(absl::string_view why) const {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " line ", line_, ": ", why.substr(0, kMaxReasonLength)));
  }

  absl::Status Take(absl::string_view line) {
    if (line.empty() || line[0] == '#') return absl::OkStatus();
    if (line[0] == '[') return BeginSection(line);
    const size_t equals = line.find('=');
    if (equals == line.npos) return Refuse("neither [NAME] nor key = \"value\"");
    if (section_.empty()) return Refuse("it belongs to no server: begin with [NAME]");
    const std::string key(absl::StripAsciiWhitespace(line.substr(0, equals)));
    if (!keys_.insert(key).second)
      return Refuse(absl::StrCat("a second '", key, "' of [", section_, "]"));
    absl::string_view value = absl::StripAsciiWhitespace(line.substr(equals + 1));
    if (key == "tls") return TakeTls(WithoutComment(value));
    const auto text = Unquote(value);
    if (!text.ok()) return text.status();
    return TakeText(key, *text);
  }

  absl::Status BeginSection(absl::string_view line) {
    if (absl::Status status = EndSection(); !status.ok()) return status;
    line = WithoutComment(line);
    if (!absl::ConsumeSuffix(&line, "]")) return Refuse("a [ without its ]");
    section_ = std::string(absl::StripAsciiWhitespace(line.substr(1)));
    if (!IsServerName(section_)) return Refuse("a name has 1 to 64 of [A-Za-z0-9_.-]");
    if (!sections_.insert(section_).second)
      return Refuse(absl::StrCat("a second [", section_, "]"));
    keys_.clear();
    next_ = ClientOptions();
    next_.server.clear();
    return absl::OkStatus();
  }

  // Checks the section that ends. Stores its options if it is the requested one.
  absl::Status EndSection() {
    if (section_.empty()) return absl::OkStatus();
    if (next_.server.empty())
      return Refuse(absl::StrCat("[", section_, "] ends without an address"));
    if (section_ != name_) return absl::OkStatus();
    options_ = std::move(next_);
    found_ = true;
    return absl::OkStatus();
  }

  static absl::string_view WithoutComment(absl::string_view text) {
    return absl::StripAsciiWhitespace(text.substr(0, text.find('#')));
  }

  // Returns the text of "text" or 'text', which a comment may follow.
  absl::StatusOr<std::string> Unquote(absl::string_view value) const {
    const char quote = value.empty() ? '\0' : value[0];
    const size_t end = value.find(quote, 1);
    if ((quote != '"' && quote != '\'') || end == value.npos)
      return Refuse("a value is in quotes: key = \"value\"");
    if (!WithoutComment(value.substr(end + 1)).empty()) return Refuse("something behind the value");
    const std::string text(value.substr(1, end - 1));
    if (quote == '"' && absl::StrContains(text, '\\'))
      return Refuse("a \\ stands in 'single quotes' alone");
    return text;
  }

  absl::Status TakeTls(absl::string_view value) {
    if (value != "true" && value != "false") return Refuse("tls is true or false");
    if (value == "true" && !next_.tls) next_.tls.emplace();
    return absl::OkStatus();
  }

  absl::Status TakeText(const std::string& key, const std::string& text) {
    if (key == "address" || key == "tenant") {
      absl::Status status = key == "tenant" ? CheckTenant(text) : CheckAddress(text);
      if (!status.ok()) return Refuse(status.message());
      (key == "tenant" ? next_.tenant : next_.server) = text;
      return absl::OkStatus();
    }
    if (key == "token_file") return TakePath(text, &next_.token_file);
    if (key == "token") {
      return Refuse(
          "no tokens here: put it into a file of mode 600, and give token_file = \"PATH\"");
    }
    const std::map<std::string, std::string TlsOptions::*> of_tls = {
        {"ca", &TlsOptions::ca_file},
        {"cert", &TlsOptions::cert_file},
        {"key", &TlsOptions::key_file},
        {"server_name", &TlsOptions::server_name}};
    const auto found = of_tls.find(key);
    if (found == of_tls.end()) {
      return Refuse(absl::StrCat("'", absl::CEscape(key.substr(0, kMaxNameLength)),
                                 "' is none of address, tenant, tls, ca, cert, key, server_name, "
                                 "token_file"));
    }
    if (!next_.tls) next_.tls.emplace();
    std::string* const to = &((*next_.tls).*found->second);
    if (key != "server_name") return TakePath(text, to);
    *to = text;
    return absl::OkStatus();
  }

  // Relative paths refer to the file's directory.
  absl::Status TakePath(absl::string_view text, std::string* to) const {
    if (text.empty()) return Refuse("an empty path");
    if (absl::ConsumePrefix(&text, "~/")) {
      *to = absl::StrCat(Variable("HOME"), "/", text);
    } else {
      *to = text[0] == '/' ? std::string(text) : absl::StrCat(directory_, text);
    }
    return absl::OkStatus();
  }

  const std::string directory_;  // with a trailing /
  const std::string path_;
  const std::string name_;
  int line_ = 0;
  std::string section_;
  std::set<std::string> sections_;
  std::set<std::string> keys_;  // keys of the current section
  ClientOptions next_;          // options of the current section
  ClientOptions options_;
  bool found_ = false;
};

// Reads the file. NOT_FOUND if it does not exist.
absl::StatusOr<std::string> ReadServersFile(const std::string& path) {
  struct stat state;
  if (stat(path.c_str(), &state) != 0 && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("no file ", path, " of servers"));
  }
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read ", path, ": ", std::strerror(errno)));
  }
  constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;
  if ((state.st_mode & kOthersWrite) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("others can write %s (mode %03o), and could redirect tokens: chmod 600 it",
                        path, state.st_mode & 0777));
  }
  return text;
}

absl::StatusOr<bool> ReadSwitch(const char* name) {
  const std::string value = absl::AsciiStrToLower(Variable(name));
  for (const char* off : {"", "0", "false", "off", "no"}) {
    if (value == off) return false;
  }
  for (const char* on : {"1", "true", "on", "yes"}) {
    if (value == on) return true;
  }
  return absl::InvalidArgumentError(
      absl::StrCat(name, "='", value, "' is neither true nor false: set it to one of them"));
}

}  // namespace

absl::StatusOr<ClientOptions> internal::ReadServer(absl::string_view text, const std::string& path,
                                                   absl::string_view name) {
  return Reader(path, name).Read(text);
}

std::string ServersFile() {
  if (std::string file = Variable("CROUT_SERVERS"); !file.empty()) return file;
  const std::string config = Variable("XDG_CONFIG_HOME");
  if (absl::StartsWith(config, "/")) return absl::StrCat(config, "/crout/servers.toml");
  const std::string home = Variable("HOME");
  return home.empty() ? "" : absl::StrCat(home, "/.config/crout/servers.toml");
}

absl::StatusOr<ClientOptions> FindServer(ClientOptions options) {
  const absl::Status address = CheckAddress(options.server);
  if (address.ok()) return options;
  const std::string path = ServersFile();
  if (path.empty() || !IsServerName(options.server)) return address;
  const absl::StatusOr<std::string> text = ReadServersFile(path);
  const absl::StatusOr<ClientOptions> found =
      text.ok() ? internal::ReadServer(*text, path, options.server)
                : absl::StatusOr<ClientOptions>(text.status());
  if (absl::IsNotFound(found.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(found.status().message(), ", and ", address.message()));
  }
  if (!found.ok()) return found.status();
  options.server = found->server;
  FillUnset(*found, &options);
  return options;
}

absl::StatusOr<ClientOptions> WithEnvironment(ClientOptions options) {
  if (options.server.empty()) options.server = Variable("CROUT_SERVER");
  if (options.server.empty()) options.server = ClientOptions().server;
  ClientOptions said;
  said.tenant = Variable("CROUT_TENANT");
  said.token_file = Variable("CROUT_TOKEN_FILE");
  TlsOptions tls;
  tls.ca_file = Variable("CROUT_CA");
  tls.cert_file = Variable("CROUT_CERT");
  tls.key_file = Variable("CROUT_KEY");
  const absl::StatusOr<bool> on = ReadSwitch("CROUT_TLS");
  if (!on.ok()) return on.status();
  if (*on || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty()) {
    said.tls = std::move(tls);
  }
  FillUnset(said, &options);
  return options;
}

}  // namespace api
}  // namespace crout
