// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/servers.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

// Header-only and without exceptions. No other file includes it, because it compiles slowly.
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace crout::client {
namespace {

constexpr size_t kMaxNameLength = 64;
// Bounds the depth of dotted keys too, which toml++ does not limit.
constexpr size_t kMaxFileBytes = 32768;
// Limit of a message, which may quote the file.
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

// Sets the fields that are unset in `options`.
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
  // A certificate and its key come from the same place.
  if (!options->tls->cert_file.empty() || !options->tls->key_file.empty()) return;
  options->tls->cert_file = from.tls->cert_file;
  options->tls->key_file = from.tls->key_file;
}

// Reads a file of servers. TOML nests tables at dots: the server "a.b" is the table b in a.
class Reader {
 public:
  Reader(const std::string& path, absl::string_view name)
      : directory_(path.substr(0, path.rfind('/') + 1)), path_(path), name_(name) {}

  absl::StatusOr<ClientOptions> Read(absl::string_view text) {
    if (text.size() > kMaxFileBytes) {
      return Refuse(1, absl::StrCat("the file has ", text.size(), " bytes; the limit is ",
                                    kMaxFileBytes, ". Split it into several files"));
    }
    const toml::parse_result parsed = toml::parse(std::string_view(text.data(), text.size()));
    if (!parsed) {
      return Refuse(parsed.error().source().begin.line, std::string(parsed.error().description()));
    }
    if (absl::Status status = ReadTable("", parsed.table()); !status.ok()) return status;
    if (found_) return std::move(*found_);
    return absl::NotFoundError(absl::StrCat(path_, " has no server [", name_, "]"));
  }

 private:
  absl::Status Refuse(int64_t line, absl::string_view why) const {
    std::string shown(why.substr(0, kMaxReasonLength));
    std::replace_if(
        shown.begin(), shown.end(), [](unsigned char c) { return !absl::ascii_isprint(c); }, '?');
    return absl::InvalidArgumentError(absl::StrCat(path_, " line ", line, ": ", shown));
  }

  // Reads a server of that name and those inside it; the root table has no name.
  absl::Status ReadTable(const std::string& name, const toml::table& table) {
    ClientOptions server;
    server.server.clear();
    bool has_keys = !name.empty() && table.empty();
    for (const auto& [source, node] : table) {
      const std::string key(source.str());
      const int64_t line = source.source().begin.line;
      if (const toml::table* const inner = node.as_table()) {
        const std::string inner_name = absl::StrCat(name, name.empty() ? "" : ".", key);
        if (!IsServerName(inner_name)) return Refuse(line, "a name has 1 to 64 of [A-Za-z0-9_.-]");
        if (absl::Status status = ReadTable(inner_name, *inner); !status.ok()) return status;
        continue;
      }
      if (name.empty()) return Refuse(line, "it belongs to no server: begin with [NAME]");
      has_keys = true;
      const absl::Status status = ReadKey(key, node, &server);
      if (!status.ok()) return Refuse(line, status.message());
    }
    if (!has_keys) return absl::OkStatus();
    const int64_t line = table.source().begin.line;
    if (server.server.empty()) {
      return Refuse(line, absl::StrCat("[", name, "] ends without an address"));
    }
    if (!sections_.insert(name).second) return Refuse(line, absl::StrCat("a second [", name, "]"));
    if (name == name_) found_ = std::move(server);
    return absl::OkStatus();
  }

  absl::Status ReadKey(const std::string& key, const toml::node& node,
                       ClientOptions* server) const {
    if (key == "tls") {
      const std::optional<bool> on = node.value_exact<bool>();
      if (!on) return absl::InvalidArgumentError("tls is true or false");
      if (*on && !server->tls) server->tls.emplace();
      return absl::OkStatus();
    }
    if (key == "token") {
      return absl::InvalidArgumentError(
          "no tokens here: put it into a file of mode 600, and give token_file = \"PATH\"");
    }
    static constexpr std::pair<absl::string_view, std::string TlsOptions::*> kOfTls[] = {
        {"ca", &TlsOptions::ca_file},
        {"cert", &TlsOptions::cert_file},
        {"key", &TlsOptions::key_file},
        {"server_name", &TlsOptions::server_name}};
    const auto* const of_tls = std::find_if(std::begin(kOfTls), std::end(kOfTls),
                                            [&](const auto& each) { return each.first == key; });
    const bool is_tls = of_tls != std::end(kOfTls);
    if (!is_tls && key != "address" && key != "tenant" && key != "token_file") {
      return absl::InvalidArgumentError(absl::StrCat(
          "'", key.substr(0, kMaxNameLength),
          "' is none of address, tenant, tls, ca, cert, key, server_name, token_file"));
    }
    const std::optional<std::string> text = node.value_exact<std::string>();
    if (!text || std::any_of(text->begin(), text->end(), absl::ascii_iscntrl)) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, " is a string without control characters: key = \"value\""));
    }
    if (key == "address" || key == "tenant") {
      (key == "tenant" ? server->tenant : server->server) = *text;
      return key == "tenant" ? CheckTenant(*text) : CheckAddress(*text);
    }
    if (is_tls && !server->tls) server->tls.emplace();
    std::string* const to = is_tls ? &((*server->tls).*of_tls->second) : &server->token_file;
    if (key != "server_name") return SetPath(*text, to);
    *to = *text;
    return absl::OkStatus();
  }

  // Paths are relative to the file's directory.
  absl::Status SetPath(absl::string_view text, std::string* to) const {
    if (text.empty()) return absl::InvalidArgumentError("an empty path");
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
  std::set<std::string> sections_;
  std::optional<ClientOptions> found_;
};

// Reads the file. NOT_FOUND if it does not exist.
absl::StatusOr<std::string> ReadServersFile(const std::string& path) {
  struct stat state;
  if (stat(path.c_str(), &state) != 0 && errno == ENOENT) {
    return absl::NotFoundError(absl::StrCat("there is no ", path));
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
      absl::StrCat(name, " is neither true nor false: write one of them"));
}

}  // namespace

absl::StatusOr<ClientOptions> ReadServer(absl::string_view text, const std::string& path,
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
  const absl::StatusOr<ClientOptions> found = text.ok()
                                                  ? ReadServer(*text, path, options.server)
                                                  : absl::StatusOr<ClientOptions>(text.status());
  if (absl::IsNotFound(found.status())) {
    return absl::InvalidArgumentError(
        absl::StrCat(address.message(), ", or the name of a server: ", found.status().message()));
  }
  if (!found.ok()) return found.status();
  options.server = found->server;
  FillUnset(*found, &options);
  return options;
}

absl::StatusOr<ClientOptions> WithEnvironment(ClientOptions options) {
  if (options.server.empty()) options.server = Variable("CROUT_SERVER");
  if (options.server.empty()) options.server = ClientOptions().server;
  ClientOptions environment;
  environment.tenant = Variable("CROUT_TENANT");
  environment.token_file = Variable("CROUT_TOKEN_FILE");
  TlsOptions tls;
  tls.ca_file = Variable("CROUT_CA");
  tls.cert_file = Variable("CROUT_CERT");
  tls.key_file = Variable("CROUT_KEY");
  const absl::StatusOr<bool> on = ReadSwitch("CROUT_TLS");
  if (!on.ok()) return on.status();
  if (*on || !tls.ca_file.empty() || !tls.cert_file.empty() || !tls.key_file.empty()) {
    environment.tls = std::move(tls);
  }
  FillUnset(environment, &options);
  return options;
}

}  // namespace crout::client
