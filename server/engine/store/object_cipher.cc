// SPDX-License-Identifier: Apache-2.0

#include "server/engine/store/object_cipher.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

using CipherContext = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
using KdfContext = std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)>;

constexpr std::string_view kMagic = "CROUTGCM";
constexpr size_t kKeyIdOffset = 8;
constexpr size_t kKeyIdBytes = 8;
constexpr size_t kSaltOffset = 16;
constexpr size_t kSaltBytes = 32;
constexpr size_t kSizeOffset = 48;
constexpr size_t kNonceBytes = 12;

absl::Status LibraryError(const char* step) {
  return absl::InternalError(absl::StrCat("OpenSSL: ", step, " failed"));
}

const unsigned char* Bytes(std::span<const std::byte> bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* MutableBytes(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

// HKDF with SHA-256.
absl::Status Derive(std::span<const std::byte> key, std::span<const std::byte> salt,
                    std::string_view info, std::span<std::byte> result) {
  EVP_KDF* const kdf = EVP_KDF_fetch(nullptr, "HKDF", nullptr);
  const KdfContext context(EVP_KDF_CTX_new(kdf), EVP_KDF_CTX_free);
  EVP_KDF_free(kdf);
  if (context == nullptr) return LibraryError("HKDF");
  std::string digest = "SHA256";
  std::string info_copy(info);
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, const_cast<std::byte*>(key.data()),
                                        key.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<std::byte*>(salt.data()),
                                        salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info_copy.data(), info_copy.size()),
      OSSL_PARAM_construct_end()};
  if (EVP_KDF_derive(context.get(), MutableBytes(result), result.size(), params) != 1) {
    return LibraryError("HKDF");
  }
  return absl::OkStatus();
}

void PutNumber(uint64_t value, std::span<std::byte> to) {
  for (size_t i = 0; i < sizeof(value); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
}

uint64_t GetNumber(std::span<const std::byte> from) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(value); ++i) value |= static_cast<uint64_t>(from[i]) << (8 * i);
  return value;
}

std::array<std::byte, kNonceBytes> NonceOf(uint64_t block) {
  std::array<std::byte, kNonceBytes> nonce = {};
  PutNumber(block, nonce);
  return nonce;
}

// Identifies a key without revealing it.
absl::Status KeyId(const ObjectKey& key, std::span<std::byte> id) {
  constexpr std::array<std::byte, kSaltBytes> kNoSalt = {};
  return Derive(key.bytes(), kNoSalt, "crout key identifier", id);
}

absl::Status Damaged() { return absl::DataLossError("a block of the sealed file was changed"); }

}  // namespace

absl::StatusOr<ObjectKey> ObjectKey::Parse(std::string_view text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.remove_suffix(1);
  if (text.size() != 2 * kBytes || !std::all_of(text.begin(), text.end(), absl::ascii_isxdigit)) {
    return absl::InvalidArgumentError(
        "a key has 64 hexadecimal digits: create one with 'openssl rand -hex 32'");
  }
  ObjectKey key;
  std::string bytes = absl::HexStringToBytes({text.data(), text.size()});
  std::memcpy(key.bytes_.data(), bytes.data(), kBytes);
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

ObjectKey::~ObjectKey() { OPENSSL_cleanse(bytes_.data(), bytes_.size()); }

ObjectCipher::~ObjectCipher() { OPENSSL_cleanse(key_.data(), key_.size()); }

absl::StatusOr<ObjectCipher> ObjectCipher::Create(const ObjectKey& key, std::string_view name,
                                                  uint64_t size) {
  ObjectCipher cipher;
  cipher.size_ = size;
  const std::span<std::byte> header = cipher.header_;
  std::memcpy(header.data(), kMagic.data(), kMagic.size());
  CROUT_RETURN_IF_ERROR(KeyId(key, header.subspan(kKeyIdOffset, kKeyIdBytes)));
  const std::span<std::byte> salt = header.subspan(kSaltOffset, kSaltBytes);
  if (RAND_bytes(MutableBytes(salt), static_cast<int>(salt.size())) != 1)
    return LibraryError("RAND");
  PutNumber(size, header.subspan(kSizeOffset));
  CROUT_RETURN_IF_ERROR(cipher.DeriveKey(key, name));
  return cipher;
}

absl::StatusOr<ObjectCipher> ObjectCipher::FromHeader(const ObjectKey& key, std::string_view name,
                                                      const Header& header, uint64_t sealed_size) {
  if (!IsSealed(header)) {
    return absl::UnimplementedError("the file is not sealed, or has another format");
  }
  std::array<std::byte, kKeyIdBytes> id;
  CROUT_RETURN_IF_ERROR(KeyId(key, id));
  if (std::memcmp(header.data() + kKeyIdOffset, id.data(), id.size()) != 0) {
    return absl::FailedPreconditionError("another key sealed the file");
  }
  ObjectCipher cipher;
  cipher.header_ = header;
  cipher.size_ = GetNumber(std::span(header).subspan(kSizeOffset));
  // A larger size would overflow in SealedSize().
  if (cipher.size_ > sealed_size || SealedSize(cipher.size_) != sealed_size) {
    return absl::DataLossError("the sealed file has another size than its header states");
  }
  CROUT_RETURN_IF_ERROR(cipher.DeriveKey(key, name));
  return cipher;
}

absl::Status ObjectCipher::DeriveKey(const ObjectKey& key, std::string_view name) {
  const std::string info = absl::StrCat("crout object ", ToAbsl(name));
  return Derive(key.bytes(), std::span(header_).subspan(kSaltOffset, kSaltBytes), info, key_);
}

bool ObjectCipher::IsSealed(std::span<const std::byte> start) {
  return start.size() >= kMagic.size() &&
         std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0;
}

uint64_t ObjectCipher::SealedSize(uint64_t size) {
  return kHeaderBytes + size + BlocksOf(size) * kTagBytes;
}

uint64_t ObjectCipher::BlocksOf(uint64_t size) {
  return size == 0 ? 1 : (size - 1) / kBlockBytes + 1;
}

size_t ObjectCipher::BlockSize(uint64_t block) const {
  return static_cast<size_t>(std::min<uint64_t>(kBlockBytes, size_ - block * kBlockBytes));
}

absl::Status ObjectCipher::Seal(uint64_t block, std::span<const std::byte> contents,
                                std::span<std::byte> sealed) const {
  const CipherContext context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const auto nonce = NonceOf(block);
  int count = 0;
  const bool done =
      context != nullptr &&
      EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key_), Bytes(nonce)) ==
          1 &&
      EVP_EncryptUpdate(context.get(), nullptr, &count, Bytes(header_), kHeaderBytes) == 1 &&
      EVP_EncryptUpdate(context.get(), MutableBytes(sealed), &count, Bytes(contents),
                        static_cast<int>(contents.size())) == 1 &&
      EVP_EncryptFinal_ex(context.get(), MutableBytes(sealed.subspan(contents.size())), &count) ==
          1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes,
                          MutableBytes(sealed.subspan(contents.size()))) == 1;
  return done ? absl::OkStatus() : LibraryError("AES-256-GCM");
}

absl::Status ObjectCipher::Open(uint64_t block, std::span<const std::byte> sealed,
                                std::span<std::byte> contents) const {
  const CipherContext context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const auto nonce = NonceOf(block);
  std::array<std::byte, kTagBytes> tag;
  std::memcpy(tag.data(), sealed.data() + contents.size(), kTagBytes);
  std::array<std::byte, kTagBytes> rest;
  int count = 0;
  const bool decrypted =
      context != nullptr &&
      EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, Bytes(key_), Bytes(nonce)) ==
          1 &&
      EVP_DecryptUpdate(context.get(), nullptr, &count, Bytes(header_), kHeaderBytes) == 1 &&
      EVP_DecryptUpdate(context.get(), MutableBytes(contents), &count, Bytes(sealed),
                        static_cast<int>(contents.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1;
  if (!decrypted) return LibraryError("AES-256-GCM");
  if (EVP_DecryptFinal_ex(context.get(), MutableBytes(rest), &count) == 1) return absl::OkStatus();
  std::fill(contents.begin(), contents.end(), std::byte{0});
  return Damaged();
}

}  // namespace crout
