// SPDX-License-Identifier: Apache-2.0

#include "server/auth/listener_credentials.h"

#include <grpc/grpc_security_constants.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/loopback.h"
#include "kernels/util/strings.h"
#include "server/net/listen_address.h"

namespace crout {
namespace {

constexpr unsigned kRereadSeconds = 1;

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ListenerCredentials(const TlsFiles& files) {
  if (!files.enabled()) return grpc::InsecureServerCredentials();
  using grpc::experimental::FileWatcherCertificateProvider;
  grpc::experimental::TlsServerCredentialsOptions options(
      std::make_shared<FileWatcherCertificateProvider>(files.key, files.certificate,
                                                       files.client_ca, kRereadSeconds));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(files.client_certificates == ClientCertificates::kRequired
                                      ? GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY
                                      : GRPC_SSL_REQUEST_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

bool IsLoopbackAddress(const std::string& address) {
  const auto tcp = ParseHostPort(address);
  return tcp.ok() && IsLoopbackHost(tcp->host);
}

std::vector<std::string> VerifiedNames(const grpc::AuthContext* peer) {
  if (peer == nullptr || !peer->IsPeerAuthenticated()) return {};
  std::vector<std::string> names;
  for (const char* property : {GRPC_PEER_SPIFFE_ID_PROPERTY_NAME, GRPC_PEER_DNS_PROPERTY_NAME}) {
    for (const grpc::string_ref& name : peer->FindPropertyValues(property)) {
      names.emplace_back(name.data(), name.size());
    }
    if (!names.empty()) break;
  }
  return names;
}

absl::Status CheckExposure(const std::vector<std::string>& addresses, const TlsFiles& files,
                           std::string_view flag) {
  if (files.enabled()) return absl::OkStatus();
  for (const std::string& address : addresses) {
    if (absl::StartsWith(address, "unix:") || IsLoopbackAddress(address)) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        ToAbsl(flag), ": ", address,
        " is reachable from other machines without encryption. Set --tls-cert and --tls-key, or "
        "set --insecure if everyone on the network may use the server and read the traffic"));
  }
  return absl::OkStatus();
}

}  // namespace crout
