// SPDX-License-Identifier: Apache-2.0

// A set of values of a small enumeration.
#ifndef CROUT_KERNELS_UTIL_ENUM_SET_H_
#define CROUT_KERNELS_UTIL_ENUM_SET_H_

#include <cstdint>
#include <initializer_list>

namespace crout {

// `Enum` has at most 32 values, numbered from 0.
template <class Enum>
class EnumSet {
 public:
  constexpr EnumSet(std::initializer_list<Enum> values) {
    for (const Enum value : values) bits_ |= Bit(value);
  }

  constexpr bool contains(Enum value) const { return (bits_ & Bit(value)) != 0; }

 private:
  static constexpr uint32_t Bit(Enum value) { return uint32_t{1} << static_cast<uint32_t>(value); }

  uint32_t bits_ = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_ENUM_SET_H_
