// SPDX-License-Identifier: Apache-2.0

#include "server/engine/cache/handle.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>

namespace crout {
namespace {

constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
constexpr size_t kCharacters = 26;  // 130 bits: the last two are zero
constexpr size_t kBits = 128;

constexpr size_t kProcessBytes = 4;

void FillRandom(uint8_t* bytes, size_t size) {
  size_t filled = 0;
  while (filled < size) {
    const ssize_t got = getrandom(bytes + filled, size - filled, /*flags=*/0);
    if (got > 0) {
      filled += static_cast<size_t>(got);
    } else if (errno != EINTR) {
      std::abort();  // A guessable handle would give access to other clients' factors.
    }
  }
}

const std::array<uint8_t, kProcessBytes>& ThisProcess() {
  static const auto process = [] {
    std::array<uint8_t, kProcessBytes> bytes;
    FillRandom(bytes.data(), bytes.size());
    return bytes;
  }();
  return process;
}

}  // namespace

Handle Handle::Random() {
  Handle handle;
  const auto& process = ThisProcess();
  FillRandom(handle.bits_.data(), handle.bits_.size() - process.size());
  std::copy(process.begin(), process.end(), handle.bits_.end() - process.size());
  return handle;
}

bool Handle::IsOfThisProcess() const {
  const auto& process = ThisProcess();
  return std::equal(process.begin(), process.end(), bits_.end() - process.size());
}

std::optional<Handle> Handle::Parse(std::string_view text) {
  if (text.size() != kCharacters) return std::nullopt;
  Handle handle;
  for (size_t i = 0; i < kCharacters; ++i) {
    const size_t value = kAlphabet.find(text[i]);
    if (value == std::string_view::npos) return std::nullopt;
    for (size_t b = 0; b < 5; ++b) {
      const size_t bit = 5 * i + b;
      const bool set = (value >> (4 - b)) & 1;
      if (bit < kBits) {
        handle.bits_[bit / 8] |= static_cast<uint8_t>(set << (7 - bit % 8));
      } else if (set) {
        return std::nullopt;
      }
    }
  }
  return handle;
}

std::string Handle::ToString() const {
  std::string text(kCharacters, '\0');
  for (size_t i = 0; i < kCharacters; ++i) {
    size_t value = 0;
    for (size_t bit = 5 * i; bit < 5 * i + 5; ++bit) {
      const bool set = bit < kBits && ((bits_[bit / 8] >> (7 - bit % 8)) & 1);
      value = 2 * value + set;
    }
    text[i] = kAlphabet[value];
  }
  return text;
}

}  // namespace crout
