// SPDX-License-Identifier: Apache-2.0

#include "tests/e2e/harness/certificates.h"

#include <gtest/gtest.h>

namespace crout::e2e {
namespace {

void RunScript(const std::string& script) {
  const Finished finished = RunToEnd({"/bin/sh", "-e", "-c", "umask 077\n" + script});
  EXPECT_EQ(finished.exit_code, 0) << finished.errors;
}

constexpr char kNewKey[] = " -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes ";

}  // namespace

void MakeAuthority(const TempDir& directory, const std::string& name) {
  const std::string at = directory.File(name);
  RunScript("openssl req -x509 -days 2" + std::string(kNewKey) + "-subj /CN=" + name + " -keyout " +
            at + ".key -out " + at + ".crt");
}

void MakeCertificate(const TempDir& directory, const std::string& name,
                     const std::string& authority, int days, const std::string& names) {
  const std::string at = directory.File(name);
  const std::string ca = directory.File(authority);
  RunScript("openssl req" + std::string(kNewKey) + "-subj /CN=" + name + " -keyout " + at +
            ".new.key -out " + at + ".csr\n" + "printf 'subjectAltName=" + names + "\\n' >" + at +
            ".ext\n" + "openssl x509 -req -in " + at + ".csr -CA " + ca + ".crt -CAkey " + ca +
            ".key -CAcreateserial -days " + std::to_string(days) + " -extfile " + at +
            ".ext -out " + at + ".new.crt\n" + "mv " + at + ".new.key " + at + ".key\n" + "mv " +
            at + ".new.crt " + at + ".crt\n");
}

void EndCertificateAt(const TempDir& directory, const std::string& name,
                      const std::string& authority, absl::Time end) {
  const std::string at = directory.File(name);
  const std::string ca = directory.File(authority);
  // Only `openssl ca` accepts an end with a time of day. It needs a database.
  RunScript(": >" + at + ".books\n" + "printf '[ca]\\ndefault_ca=it\\n[it]\\ndatabase=" + at +
            ".books\\nnew_certs_dir=" + directory.File("") +
            "\\nunique_subject=no\\nrand_serial=yes\\ndefault_md=sha256\\npolicy=any\\n" +
            "[any]\\ncommonName=supplied\\n' >" + at + ".cnf\n" + "openssl ca -batch -config " +
            at + ".cnf -cert " + ca + ".crt -keyfile " + ca + ".key -in " + at + ".csr -extfile " +
            at + ".ext -enddate " + absl::FormatTime("%Y%m%d%H%M%SZ", end, absl::UTCTimeZone()) +
            " -notext -out " + at + ".new.crt\n" + "mv " + at + ".new.crt " + at + ".crt\n");
}

}  // namespace crout::e2e
