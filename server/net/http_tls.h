// SPDX-License-Identifier: Apache-2.0

// TLS contexts and certificate names for the HTTP server.
#ifndef CROUT_SERVER_NET_HTTP_TLS_H_
#define CROUT_SERVER_NET_HTTP_TLS_H_

#include <openssl/ssl.h>

#include <boost/asio/ssl/context.hpp>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/net/http_server.h"

namespace crout {

using HttpTlsContext = std::shared_ptr<boost::asio::ssl::context>;

// Creates a context for TLS 1.2 or newer with forward secrecy and authenticated encryption, without
// resumption or renegotiation. INVALID_ARGUMENT if `tls` is invalid.
absl::StatusOr<HttpTlsContext> MakeHttpTlsContext(const HttpTls& tls);

// Returns the names in the peer's verified certificate: its SPIFFE ID if it has one, else its DNS
// names. Empty without a certificate.
std::vector<std::string> CertificateNames(SSL* connection);

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_TLS_H_
