// SPDX-License-Identifier: Apache-2.0

// Reads the TLS files that settings name.
#ifndef CROUT_SERVER_AUTH_TLS_FILES_H_
#define CROUT_SERVER_AUTH_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace crout {

enum class ClientCertificates { kOptional, kRequired };

// Paths of PEM files; "": not set.
struct TlsFiles {
  std::string certificate;  // the server's certificate first, then its chain
  std::string key;          // the private key, without a passphrase
  std::string client_ca;    // roots of client certificates; "": request none
  ClientCertificates client_certificates = ClientCertificates::kRequired;

  bool enabled() const { return !certificate.empty(); }
};

// Contents of the files, in PEM. Without files: empty texts and default times.
struct TlsContents {
  std::string identity;  // private key, then the certificate chain
  std::string roots;     // roots of client certificates
  absl::Time begin;      // start of the server certificate's validity
  absl::Time end;        // end of its validity

  friend bool operator==(const TlsContents&, const TlsContents&) = default;
};

// Reads and checks the files. FAILED_PRECONDITION, with the setting and the fix, unless:
//
//   - certificate and key are set together, and client roots only with them;
//   - every file is readable and well-formed, and only its owner may write it;
//   - the key matches the certificate;
//   - the group of the key file may at most read it, and other users have no access;
//   - the certificate is valid now.
//
// Messages contain nothing from the files.
absl::StatusOr<TlsContents> ReadTlsFiles(const TlsFiles& files);

// Returns the status of ReadTlsFiles().
absl::Status CheckTlsFiles(const TlsFiles& files);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TLS_FILES_H_
