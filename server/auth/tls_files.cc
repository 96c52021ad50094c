// SPDX-License-Identifier: Apache-2.0

#include "server/auth/tls_files.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pemerr.h>
#include <openssl/x509.h>

#include <ctime>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "kernels/util/status_macros.h"
#include "server/auth/openssl.h"
#include "server/auth/setting_file.h"

namespace crout {
namespace {

openssl::Bio Open(const std::string& text) {
  return openssl::Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Returns the first certificate in `text`. All certificates in it must be well-formed.
absl::StatusOr<openssl::Certificate> ParseCertificates(const SettingFile& setting,
                                                       const std::string& text) {
  const openssl::Bio bio = Open(text);
  const auto next = [&] {
    return openssl::Certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  };
  openssl::Certificate first = next();
  while (first != nullptr && next() != nullptr) {
  }
  const bool read_to_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (first == nullptr) return setting.Refuse("contains no PEM certificate");
  if (!read_to_end) return setting.Refuse("contains an incomplete or malformed certificate");
  return first;
}

absl::StatusOr<openssl::Key> ParseKey(const SettingFile& setting, const std::string& text) {
  // By default OpenSSL would prompt for the passphrase on the terminal.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  openssl::Key key(PEM_read_bio_PrivateKey(Open(text).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  if (key == nullptr) return setting.Refuse("contains no PEM private key without a passphrase");
  return key;
}

absl::Time ToTime(const ASN1_TIME* time) {
  tm broken = {};
  if (ASN1_TIME_to_tm(time, &broken) != 1) return absl::InfinitePast();
  return absl::FromTM(broken, absl::UTCTimeZone());
}

// Reads the key and the certificates, with the validity period of the first certificate.
absl::StatusOr<TlsContents> ReadPair(const SettingFile& certificate_file,
                                     const SettingFile& key_file) {
  CROUT_ASSIGN_OR_RETURN(const std::string key_text,
                         ReadSettingFile(key_file, FileAccess::kPrivate));
  CROUT_ASSIGN_OR_RETURN(const std::string certificate_text,
                         ReadSettingFile(certificate_file, FileAccess::kPublic));
  CROUT_ASSIGN_OR_RETURN(const openssl::Key key, ParseKey(key_file, key_text));
  CROUT_ASSIGN_OR_RETURN(const openssl::Certificate certificate,
                         ParseCertificates(certificate_file, certificate_text));
  const bool fits = X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (!fits) {
    return key_file.Refuse(absl::StrCat("is not the key of the first certificate in ",
                                        certificate_file.path,
                                        ", which must be the certificate of the server"));
  }
  if (X509_cmp_current_time(X509_get0_notAfter(certificate.get())) <= 0) {
    return certificate_file.Refuse("has expired. Renew it");
  }
  if (X509_cmp_current_time(X509_get0_notBefore(certificate.get())) >= 0) {
    return certificate_file.Refuse("is not valid yet. Check the clock of this machine");
  }
  return TlsContents{.identity = absl::StrCat(key_text, "\n", certificate_text),
                     .roots = "",
                     .begin = ToTime(X509_get0_notBefore(certificate.get())),
                     .end = ToTime(X509_get0_notAfter(certificate.get()))};
}

}  // namespace

absl::StatusOr<TlsContents> ReadTlsFiles(const TlsFiles& files) {
  if (files.certificate.empty() != files.key.empty()) {
    return absl::FailedPreconditionError("--tls-cert and --tls-key must be given together");
  }
  if (!files.client_ca.empty() && !files.enabled()) {
    return absl::FailedPreconditionError("--tls-client-ca needs TLS: set --tls-cert and --tls-key");
  }
  TlsContents contents;
  if (!files.enabled()) return contents;
  CROUT_ASSIGN_OR_RETURN(contents,
                         ReadPair({"--tls-cert", files.certificate}, {"--tls-key", files.key}));
  if (files.client_ca.empty()) return contents;
  const SettingFile client_ca = {"--tls-client-ca", files.client_ca};
  CROUT_ASSIGN_OR_RETURN(contents.roots, ReadSettingFile(client_ca, FileAccess::kPublic));
  CROUT_RETURN_IF_ERROR(ParseCertificates(client_ca, contents.roots).status());
  return contents;
}

absl::Status CheckTlsFiles(const TlsFiles& files) { return ReadTlsFiles(files).status(); }

}  // namespace crout
