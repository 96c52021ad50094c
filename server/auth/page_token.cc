// SPDX-License-Identifier: Apache-2.0

#include "server/auth/page_token.h"

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/strings.h"

namespace crout {
namespace {

using Block = std::array<uint8_t, 16>;

constexpr size_t kPositionBytes = sizeof(int64_t);
constexpr size_t kListBytes = sizeof(Block) - kPositionBytes;

Block DrawKey() {
  Block key;
  while (getrandom(key.data(), key.size(), /*flags=*/0) != static_cast<ssize_t>(key.size())) {
    if (errno != EINTR) std::abort();  // Tokens under a guessable key would reveal positions.
  }
  return key;
}

// Encrypts or decrypts one AES-128 block under the process's key.
Block Cipher(const Block& in, bool encrypt) {
  static const Block key = DrawKey();
  const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(
      EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  if (context == nullptr) throw std::bad_alloc();
  Block out;
  int written = 0;
  if (EVP_CipherInit_ex(context.get(), EVP_aes_128_ecb(), nullptr, key.data(), nullptr,
                        encrypt ? 1 : 0) != 1 ||
      EVP_CIPHER_CTX_set_padding(context.get(), 0) != 1 ||
      EVP_CipherUpdate(context.get(), out.data(), &written, in.data(), sizeof in) != 1 ||
      written != static_cast<int>(sizeof out)) {
    throw std::bad_alloc();  // Without padding, only a failed allocation can cause this.
  }
  return out;
}

Block BlockOf(std::string_view tenant, std::string_view name, int64_t position) {
  // A tenant's name has no NUL.
  const std::string list = absl::StrCat(ToAbsl(tenant), absl::string_view("\0", 1), ToAbsl(name));
  std::array<uint8_t, SHA256_DIGEST_LENGTH> hash;
  SHA256(reinterpret_cast<const uint8_t*>(list.data()), list.size(), hash.data());
  Block block;
  std::memcpy(block.data(), &position, kPositionBytes);
  std::memcpy(block.data() + kPositionBytes, hash.data(), kListBytes);
  return block;
}

std::string TextOf(const Block& block) {
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(block.data()), block.size()));
}

}  // namespace

std::string EncodePageToken(std::string_view tenant, std::string_view name, int64_t position) {
  return TextOf(Cipher(BlockOf(tenant, name, position), /*encrypt=*/true));
}

std::optional<int64_t> DecodePageToken(std::string_view tenant, std::string_view name,
                                       std::string_view token) {
  if (token.size() != 2 * sizeof(Block)) return std::nullopt;
  const std::string bytes = absl::HexStringToBytes(ToAbsl(token));
  Block block;
  std::memcpy(block.data(), bytes.data(), sizeof block);
  block = Cipher(block, /*encrypt=*/false);
  int64_t position = 0;
  std::memcpy(&position, block.data(), kPositionBytes);
  // Compares the text, because `token` may contain characters that are not hexadecimal digits.
  if (position <= 0 || EncodePageToken(tenant, name, position) != token) return std::nullopt;
  return position;
}

}  // namespace crout
