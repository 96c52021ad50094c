// SPDX-License-Identifier: Apache-2.0

// Creates certificates for tests with the openssl command. On an error of the command, the test
// fails.
#ifndef CROUT_TESTS_E2E_HARNESS_CERTIFICATES_H_
#define CROUT_TESTS_E2E_HARNESS_CERTIFICATES_H_

#include <string>

#include "absl/time/time.h"
#include "tests/e2e/harness/process.h"

namespace crout::e2e {

// Writes NAME.crt and NAME.key (mode 600) of a certificate authority into `directory`.
void MakeAuthority(const TempDir& directory, const std::string& name);

// Writes NAME.crt and NAME.key of a certificate for a server or client into `directory`, by
// renaming both files. The certificate is signed by `authority` in the same directory and expires
// in `days` days; it has expired if `days` is negative. `names` is its subjectAltName in the syntax
// of openssl.
void MakeCertificate(const TempDir& directory, const std::string& name,
                     const std::string& authority, int days = 2,
                     const std::string& names = "IP:127.0.0.1,DNS:localhost");

// Replaces NAME.crt, written by MakeCertificate(), by the same certificate with the expiry `end`,
// rounded down to a second.
void EndCertificateAt(const TempDir& directory, const std::string& name,
                      const std::string& authority, absl::Time end);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_HARNESS_CERTIFICATES_H_
