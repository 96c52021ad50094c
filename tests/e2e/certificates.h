// Certificates of a test's own, made by the command openssl.
#ifndef CROUT_TESTS_E2E_CERTIFICATES_H_
#define CROUT_TESTS_E2E_CERTIFICATES_H_

#include <string>

#include "absl/time/time.h"
#include "tests/e2e/process.h"

namespace crout::e2e {

// Writes NAME.crt and NAME.key (mode 600) into `directory`: a certificate authority.
void MakeAuthority(const TempDir& directory, const std::string& name);

// Likewise: a certificate for `names`, subjectAltName as openssl wants it, as a server or a client,
// which `authority` in the same directory has signed; it ends `days` from now, which may be before
// now. Both files are put in place by renaming them.
void MakeCertificate(const TempDir& directory, const std::string& name,
                     const std::string& authority, int days = 2,
                     const std::string& names = "IP:127.0.0.1,DNS:localhost");

// Puts a certificate in the place of NAME.crt, which MakeCertificate has made, that is like it but
// for its end, a whole second.
void EndCertificateAt(const TempDir& directory, const std::string& name,
                      const std::string& authority, absl::Time end);

}  // namespace crout::e2e

#endif  // CROUT_TESTS_E2E_CERTIFICATES_H_
