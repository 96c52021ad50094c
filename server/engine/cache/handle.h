// SPDX-License-Identifier: Apache-2.0

// Handles: the identifiers of cached factors.
#ifndef CROUT_SERVER_ENGINE_CACHE_HANDLE_H_
#define CROUT_SERVER_ENGINE_CACHE_HANDLE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace crout {

// 96 random bits, then 32 bits of the process that made the handle. As text, 26 characters of
// lower-case base32 (RFC 4648 alphabet, no padding).
class Handle {
 public:
  Handle() = default;  // all zero: no factor

  // Returns a new handle from the system's random source, because a handle is also the capability
  // to use the factor. Aborts the process if the source fails.
  static Handle Random();
  // Returns nullopt unless `text` is the result of ToString() for some handle.
  static std::optional<Handle> Parse(std::string_view text);

  std::string ToString() const;

  // Returns true if Random() of this process returned the handle. The 32 bits of two processes are
  // random; they are equal with a probability of 2^-32.
  bool IsOfThisProcess() const;

  friend auto operator<=>(const Handle&, const Handle&) = default;
  template <class H>
  friend H AbslHashValue(H h, const Handle& handle) {
    return H::combine(std::move(h), handle.bits_);
  }

 private:
  std::array<uint8_t, 16> bits_{};
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CACHE_HANDLE_H_
