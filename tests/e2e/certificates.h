// SPDX-License-Identifier: Apache-2.0

// Makes certificates for tests with the openssl command.
#ifndef CROUT_TESTS_E2E_CERTIFICATES_H_
#define CROUT_TESTS_E2E_CERTIFICATES_H_

#include <string>

#include "absl/time/time.h"
#include "tests/e2e/process.h"

namespace crout::e2e {

// Writes NAME.crt and NAME.key (mode 600) of a certificate authority into `directory`.
void MakeAuthority(const TempDir& directory, const std::string& name);

// Writes NAME.crt and NAME.key of a server or client certificate into `directory`. `authority`, in
// the same directory, signs it. `names` is openssl's subjectAltName. The certificate expires in
// `days` days; a negative number makes it expired. Both files are put in place by renaming.
void MakeCertificate(const TempDir& directory, const std::string& name,
                     const std::string& authority, int days = 2,
                     const std::string& names = "IP:127.0.0.1,DNS:localhost");

// Replaces NAME.crt, made by MakeCertificate(), by the same certificate that expires at `end`, a
// whole second.
void EndCertificateAt(const TempDir& directory, const std::string& name,
                      const std::string& authority, absl::Time end);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_CERTIFICATES_H_
