// SPDX-License-Identifier: Apache-2.0

// The files that TLS needs, as settings name them.
#ifndef CROUT_SERVER_AUTH_TLS_FILES_H_
#define CROUT_SERVER_AUTH_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace crout {

enum class ClientCertificates { kOptional, kRequired };

// Paths of PEM files; "": not given.
struct TlsFiles {
  std::string certificate;  // the server's own first, then those up to a root
  std::string key;          // its private key, without a passphrase
  std::string client_ca;    // roots of clients' certificates; none: clients are not asked for one
  ClientCertificates client_certificates = ClientCertificates::kRequired;

  bool enabled() const { return !certificate.empty(); }
};

// What they hold, texts in PEM; nothing is given: empty texts, and no time at all.
struct TlsContents {
  std::string identity;  // the key, then its certificate and those up to a root
  std::string roots;     // of clients' certificates
  absl::Time begin;      // when the time of the server's certificate begins
  absl::Time end;        // and when it is over

  friend bool operator==(const TlsContents&, const TlsContents&) = default;
};

// FAILED_PRECONDITION, naming the setting and what to do, unless a server can use `files`:
// certificate and key are given both or neither, and clients' roots only with them; every file can
// be read and is what it should be; the key fits the certificate, and neither its group may write
// nor others read, write or execute it; the certificate's time has begun and is not over.
// No message holds anything of a file's contents.
absl::StatusOr<TlsContents> ReadTlsFiles(const TlsFiles& files);

// Only whether they are so.
absl::Status CheckTlsFiles(const TlsFiles& files);

}  // namespace crout

#endif  // CROUT_SERVER_AUTH_TLS_FILES_H_
