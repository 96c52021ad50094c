// SPDX-License-Identifier: Apache-2.0

#include "client/cpp/credentials.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"

namespace crout {
inline namespace api {
namespace internal {
namespace {

// Reads a file. `what` describes the file in messages.
absl::StatusOr<std::string> ReadAll(const std::string& path, absl::string_view what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!(text << file.rdbuf())) {
    return absl::InvalidArgumentError(
        absl::StrCat("cannot read the ", what, " ", path, ": ", std::strerror(errno)));
  }
  return text.str();
}

// Reads a file of PEM blocks.
absl::StatusOr<std::string> ReadPem(const std::string& path, absl::string_view what) {
  absl::StatusOr<std::string> text = ReadAll(path, what);
  if (text.ok() && !absl::StrContains(*text, "-----BEGIN ")) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ", what, " ", path, " is no PEM file: it has no BEGIN line"));
  }
  return text;
}

// INVALID_ARGUMENT if a file with a key or token gives permissions to others than its owner.
absl::Status CheckPrivate(const std::string& path, absl::string_view what) {
  constexpr mode_t kOthers = S_IRWXG | S_IRWXO;
  struct stat state;
  if (stat(path.c_str(), &state) != 0 || (state.st_mode & kOthers) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat(
      "others can read the %s %s (mode %03o): chmod 600 it", what, path, state.st_mode & 0777));
}

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

Owned<BIO> Open(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// INVALID_ARGUMENT if the key does not belong to the first certificate; gRPC's error would name
// neither. Accepts texts that OpenSSL cannot parse, because the handshake reports them.
absl::Status CheckPair(const TlsOptions& tls, const grpc::SslCredentialsOptions& texts) {
  if (tls.cert_file.empty()) return absl::OkStatus();
  // By default OpenSSL would prompt for the passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  const Owned<X509> certificate(
      PEM_read_bio_X509(Open(texts.pem_cert_chain).get(), nullptr, no_passphrase, nullptr));
  const Owned<EVP_PKEY> key(
      PEM_read_bio_PrivateKey(Open(texts.pem_private_key).get(), nullptr, no_passphrase, nullptr));
  const bool differ = certificate != nullptr && key != nullptr &&
                      X509_check_private_key(certificate.get(), key.get()) != 1;
  ERR_clear_error();
  if (!differ) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the key ", tls.key_file, " does not belong to the certificate ", tls.cert_file,
                   ": name the key of this certificate"));
}

// Returns a message for the user if gRPC's `message` reports a failed name lookup; otherwise "".
std::string LookupError(absl::string_view message) {
  if (!absl::ConsumePrefix(&message, "DNS resolution failed for ")) return "";
  const size_t end = message.find(": ");
  if (end == message.npos) return "";
  const absl::string_view address = message.substr(0, end);
  const absl::string_view cause = message.substr(message.rfind(": ") + 2);
  return absl::StrCat("no address is known for ", address.substr(0, address.rfind(':')), " (",
                      cause, "). Check the name of the server");
}

// Returns a hint for gRPC's `message` about a failed connection; empty if there is none.
absl::string_view HintFor(absl::string_view message, bool tls) {
  if (!absl::StrContains(message, "failed to connect")) return "";
  if (absl::StrContains(message, "Connection refused") ||
      (absl::StrContains(message, "unix:") && absl::StrContains(message, "No such file"))) {
    return "start croutd there, or name another server";
  }
  if (absl::StrContains(message, "http1.x server")) {
    return "the port there speaks HTTP/1, like croutd's metrics port: call the port of "
           "--listen";
  }
  if (absl::StrContains(message, "certificate verify failed")) {
    return "the server's certificate is not signed by an authority that this client trusts "
           "(CA), or it has expired";
  }
  if (absl::StrContains(message, "not in peer certificate")) {
    return "the server's certificate is not for this name: call the server by a name that it has, "
           "or ask its operator for one with this name";
  }
  if (absl::StrContains(message, "wrong version number")) {
    return "the server speaks no TLS there: leave TLS out, or call the port that speaks it";
  }
  if (absl::StrContains(message, "unsupported protocol") ||
      absl::StrContains(message, "protocol version")) {
    return "the server speaks no TLS 1.2 or newer there, and this client nothing older";
  }
  if (!absl::StrContains(message, "Socket closed") &&
      !absl::StrContains(message, "Connection reset")) {
    return "";
  }
  return tls ? "the server ended the handshake: give a client certificate, one that its authority "
               "has signed and whose time is not over"
             : "the server ended the connection: if it speaks TLS, give TLS";
}

}  // namespace

absl::Status ExplainConnection(absl::Status status, bool tls) {
  if (!absl::IsUnavailable(status)) return status;
  if (const std::string lookup = LookupError(status.message()); !lookup.empty()) {
    return absl::UnavailableError(lookup);
  }
  const absl::string_view hint = HintFor(status.message(), tls);
  if (hint.empty()) return status;
  return absl::UnavailableError(absl::StrCat(status.message(), "; ", hint));
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(
    const std::optional<TlsOptions>& tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  const auto read = [](const std::string& path, absl::string_view what, std::string* to) {
    if (path.empty()) return absl::OkStatus();
    absl::StatusOr<std::string> text = ReadPem(path, what);
    if (text.ok()) *to = *std::move(text);
    return text.status();
  };
  if (tls->cert_file.empty() != tls->key_file.empty()) {
    return absl::InvalidArgumentError("a client's certificate and its key go together: give both");
  }
  for (const absl::Status& status :
       {read(tls->ca_file, "CA file", &options.pem_root_certs),
        read(tls->cert_file, "certificate", &options.pem_cert_chain),
        read(tls->key_file, "key", &options.pem_private_key),
        tls->key_file.empty() ? absl::OkStatus() : CheckPrivate(tls->key_file, "key")}) {
    if (!status.ok()) return status;
  }
  if (absl::Status status = CheckPair(*tls, options); !status.ok()) return status;
  return grpc::SslCredentials(options);
}

absl::StatusOr<std::string> LoadToken(const ClientOptions& options) {
  if (options.token.empty() && options.token_file.empty()) return "";
  if (!options.token.empty() && !options.token_file.empty()) {
    return absl::InvalidArgumentError("both token and token_file are set: leave one of them out");
  }
  if (!options.tls && !IsLocal(options.server)) {
    return absl::InvalidArgumentError(absl::StrCat("a token for ", options.server,
                                                   " could be read on its way: give TLS too, or "
                                                   "the address of a Unix socket or of loopback"));
  }
  std::string token = options.token;
  if (!options.token_file.empty()) {
    const absl::StatusOr<std::string> text = ReadAll(options.token_file, "token file");
    if (!text.ok()) return text.status();
    absl::Status status = CheckPrivate(options.token_file, "token file");
    if (!status.ok()) return status;
    token = std::string(absl::StripAsciiWhitespace(*text));
  }
  if (absl::Status status = CheckToken(token); !status.ok()) return status;
  return token;
}

}  // namespace internal
}  // namespace api
}  // namespace crout
