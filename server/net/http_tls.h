// SPDX-License-Identifier: Apache-2.0

// TLS for pages: what a server shows and asks for.
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

// TLS 1.2 or newer, with forward secrecy and authenticated encryption alone; no resumption, no
// renegotiation. INVALID_ARGUMENT where `tls` is not what it should be.
absl::StatusOr<HttpTlsContext> MakeHttpTlsContext(const HttpTls& tls);

// Those of the certificate that the peer has shown and that was verified: its SPIFFE ID where it
// has one, else its DNS names; empty without a certificate.
std::vector<std::string> CertificateNames(SSL* connection);

}  // namespace crout

#endif  // CROUT_SERVER_NET_HTTP_TLS_H_
