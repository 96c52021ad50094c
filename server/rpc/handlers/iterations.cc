// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/handlers/iterations.h"

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
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "server/engine/error.h"
#include "server/rpc/codec/status.h"

namespace crout {
namespace {

constexpr int64_t kMaxPageSize = 65536;

// The start of a page: the factor's version and the index of the page's first count.
struct PagePosition {
  int64_t version = 0;  // 0: the current version
  int64_t first = 0;
};

absl::StatusOr<PagePosition> DecodeToken(const std::string& token) {
  PagePosition position;
  if (token.empty()) return position;
  const std::pair<absl::string_view, absl::string_view> parts =
      absl::StrSplit(token, absl::MaxSplits('.', 1));
  if (!absl::SimpleAtoi(parts.first, &position.version) || position.version <= 0 ||
      !absl::SimpleAtoi(parts.second, &position.first) || position.first < 0) {
    return BadField("iterations.page_token",
                    "not a token that DescribeFactor returned: begin with the first page");
  }
  return position;
}

// Adds to `field` the counts of `counts` whose record indices are in [first, end). The record index
// of counts[0] is `base`.
template <class Field>
void AddRange(const std::vector<int64_t>& counts, int64_t base, int64_t first, int64_t end,
              Field* field) {
  const auto size = static_cast<int64_t>(counts.size());
  const int64_t from = std::clamp<int64_t>(first - base, 0, size);
  const int64_t to = std::clamp<int64_t>(end - base, 0, size);
  field->Add(counts.begin() + from, counts.begin() + to);
}

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

absl::Status AddIterations(const FactorInfo& info, const v1::IterationPageRequest& request,
                           v1::IterationPage* page) {
  if (request.page_size() < 0)
    return BadField("iterations.page_size",
                    absl::StrCat(request.page_size(), " is negative: send 0 or more"));
  CROUT_ASSIGN_OR_RETURN(const PagePosition position, DecodeToken(request.page_token()));
  if (!info.summary.iterations) {
    return absl::FailedPreconditionError(
        absl::StrCat(info.summary.algorithm,
                     " does not iterate and keeps no counts: factor with icm or icmpp for them"));
  }
  if (info.record == nullptr) {
    return absl::FailedPreconditionError(
        "the counts of this factor were dropped when host memory was short: factor again for them");
  }
  if (position.version != 0 && position.version != info.version) {
    return absl::FailedPreconditionError(absl::StrCat(
        "version ", position.version, " was replaced: start again from the first page"));
  }
  const IterationRecord& record = *info.record;
  const auto sweeps = static_cast<int64_t>(record.sweeps.size());
  const int64_t pivots = sweeps + static_cast<int64_t>(record.pivots.size());
  const int64_t total = pivots + static_cast<int64_t>(record.bad_elements.size());
  const int64_t size = request.page_size() == 0
                           ? kMaxPageSize
                           : std::min<int64_t>(request.page_size(), kMaxPageSize);
  const int64_t first = std::min(position.first, total);
  const int64_t end = std::min(first + size, total);
  page->set_version(info.version);
  page->set_sections(info.summary.iterations->sections);
  AddRange(record.sweeps, 0, first, end, page->mutable_sweeps());
  AddRange(record.pivots, sweeps, first, end, page->mutable_pivots());
  AddRange(record.bad_elements, pivots, first, end, page->mutable_bad_elements());
  if (end < total) page->set_next_page_token(absl::StrCat(info.version, ".", end));
  return absl::OkStatus();
}

std::string EncodePageToken(std::string_view tenant, std::string_view name, int64_t position) {
  return TextOf(Cipher(BlockOf(tenant, name, position), /*encrypt=*/true));
}

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

}  // namespace crout
