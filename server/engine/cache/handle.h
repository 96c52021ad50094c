// SPDX-License-Identifier: Apache-2.0

// Names of cached factors.
#ifndef CROUT_SERVER_ENGINE_CACHE_HANDLE_H_
#define CROUT_SERVER_ENGINE_CACHE_HANDLE_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace crout {

// 128 random bits; 26 characters of lower-case base32 (RFC 4648 alphabet, no padding) as text.
class Handle {
 public:
  Handle() = default;  // all zero: names nothing

  // From the system's random source: a handle is also the capability to use the factor.
  static Handle Random();
  // nullopt unless `text` is exactly what ToString() gives for some handle.
  static std::optional<Handle> Parse(std::string_view text);

  std::string ToString() const;

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
