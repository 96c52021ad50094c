// SPDX-License-Identifier: Apache-2.0

#include "server/net/http_stream.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/ssl/verify_mode.hpp>
#include <string_view>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace crout {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;

// The TLS 1.2 suites that gRPC's listeners use. OpenSSL has no weak suites for TLS 1.3.
constexpr char kSuites[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
constexpr std::string_view kSpiffe = "spiffe://";

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
template <class T>
using Owned = std::unique_ptr<T, Free>;

// Sends the names of the accepted roots to clients.
void NameRoots(SSL_CTX* context, const std::string& roots) {
  const Owned<BIO> bio(BIO_new_mem_buf(roots.data(), static_cast<int>(roots.size())));
  for (;;) {
    const Owned<X509> root(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (root == nullptr) break;
    SSL_CTX_add_client_CA(context, root.get());
  }
  ERR_clear_error();
}

std::string TextOf(const ASN1_IA5STRING* name) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(name)),
          static_cast<size_t>(ASN1_STRING_length(name))};
}

}  // namespace

absl::StatusOr<HttpTlsContext> MakeHttpTlsContext(const HttpTls& tls) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  SSL_CTX* const native = context->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                  SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_num_tickets(native, 0);
  SSL_CTX_set_session_cache_mode(native, SSL_SESS_CACHE_OFF);
  boost::system::error_code error;
  if (SSL_CTX_set_cipher_list(native, kSuites) != 1)
    return absl::InternalError("cannot set the TLS cipher suites");
  context->use_certificate_chain(asio::buffer(tls.identity), error);
  if (!error) context->use_private_key(asio::buffer(tls.identity), ssl::context::pem, error);
  if (!error && !tls.client_roots.empty()) {
    context->add_certificate_authority(asio::buffer(tls.client_roots), error);
    NameRoots(native, tls.client_roots);
    const auto required = tls.client_certificates_required ? ssl::verify_fail_if_no_peer_cert : 0;
    if (!error) context->set_verify_mode(ssl::verify_peer | required, error);
  }
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat("certificate or key: ", error.message()));
  }
  return context;
}

std::vector<std::string> CertificateNames(SSL* connection) {
  const Owned<X509> certificate(SSL_get1_peer_certificate(connection));
  if (certificate == nullptr || SSL_get_verify_result(connection) != X509_V_OK) return {};
  const Owned<GENERAL_NAMES> names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate.get(), NID_subject_alt_name, nullptr, nullptr)));
  std::vector<std::string> dns;
  for (int i = 0; i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* const name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS) dns.push_back(TextOf(name->d.dNSName));
    if (name->type != GEN_URI) continue;
    std::string uri = TextOf(name->d.uniformResourceIdentifier);
    if (uri.starts_with(kSpiffe)) return {std::move(uri)};
  }
  return dns;
}

}  // namespace crout
