// SPDX-License-Identifier: Apache-2.0

// ListFactors: lists the factors of a tenant, page by page. Page tokens are encrypted list
// positions that only this process can read.
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"
#include "server/rpc/codec/encode.h"
#include "server/rpc/handlers/handlers.h"

namespace crout {
namespace {

constexpr int kDefaultPageSize = 100;
constexpr int kMaxFactors = 1000;

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

// Returns the token for `position` in the list of the factors of `tenant` with the name `name`. The
// token is one AES-128 block under a random key that the process draws at first use. The block
// holds the position and a hash of tenant and name. It is encrypted because positions also count
// the factors of other tenants.
std::string EncodePageToken(std::string_view tenant, std::string_view name, int64_t position) {
  return TextOf(Cipher(BlockOf(tenant, name, position), /*encrypt=*/true));
}

// Returns the position in `token`. Returns INVALID_ARGUMENT if EncodePageToken() did not create the
// token for this list. An altered token passes with probability 2^-64.
absl::StatusOr<int64_t> DecodePageToken(std::string_view tenant, std::string_view name,
                                        std::string_view token) {
  if (token.size() == 2 * sizeof(Block)) {
    const std::string bytes = absl::HexStringToBytes(ToAbsl(token));
    Block block;
    std::memcpy(block.data(), bytes.data(), sizeof block);
    block = Cipher(block, /*encrypt=*/false);
    int64_t position = 0;
    std::memcpy(&position, block.data(), kPositionBytes);
    // Compares the text, because `token` may contain characters that are not hexadecimal digits.
    if (position > 0 && EncodePageToken(tenant, name, position) == token) return position;
  }
  return BadField("page_token",
                  "not a token that this server returned for the same tenant and name: begin with "
                  "the first page");
}

}  // namespace

absl::Status ListFactors(ServerCore& core, const Scope& scope,
                         const v1::ListFactorsRequest& request, v1::ListFactorsResponse* response) {
  if (request.page_size() < 0)
    return BadField("page_size", absl::StrCat(request.page_size(), " is negative: send 0 or more"));
  const int limit =
      request.page_size() == 0 ? kDefaultPageSize : std::min(request.page_size(), kMaxFactors);
  int64_t before = 0;
  if (!request.page_token().empty()) {
    CROUT_ASSIGN_OR_RETURN(before,
                           DecodePageToken(scope.tenant, request.name(), request.page_token()));
  }
  int64_t next = 0;
  for (const FactorInfo& info :
       core.engine.cache.List(scope.tenant, request.name(), before, limit, &next)) {
    *response->add_factors() = Encode(info);
  }
  if (next != 0) response->set_next_page_token(EncodePageToken(scope.tenant, request.name(), next));
  return absl::OkStatus();
}

}  // namespace crout
