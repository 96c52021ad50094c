// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/matrix_functions.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/host/device/parallel_for.h"
#include "kernels/scalar.h"

namespace crout::host {
namespace {

bool IsInside(const EntryList& entries, int64_t k, const AnyMatrix& a) {
  return entries.rows[k] >= 0 && entries.rows[k] < a.rows && entries.cols[k] >= 0 &&
         entries.cols[k] < a.cols;
}

constexpr int64_t kNone = std::numeric_limits<int64_t>::max();

// Value of a source of the map: the entry itself or its mirror image.
template <class T>
WideType<T> Take(const ValueMapShape& shape, uint32_t source, const T* values) {
  const WideType<T> value = ToFloat64(values[source & ValueMap::kLine]);
  if ((source & ValueMap::kMirrored) == 0) return value;
  if constexpr (kIsComplex<T>) {
    return {shape.mirror_sign * value.real(), shape.imaginary_mirror_sign * value.imag()};
  } else {
    return shape.mirror_sign * value;
  }
}

// Line of a source that must be real but is not; kNone otherwise.
template <class T>
int64_t NotReal(uint32_t source, const T* values) {
  if constexpr (kIsComplex<T>) {
    const uint32_t line = source & ValueMap::kLine;
    if ((source & ValueMap::kReal) != 0 && values[line].imag() != 0) return line;
  }
  return kNone;
}

// Computes elements [begin, end). Returns the first line that must be real but is not, or kNone.
template <class T>
int64_t SumRange(const ValueMap& map, int64_t begin, int64_t end, const T* values, T* out) {
  int64_t not_real = kNone;
  for (int64_t e = begin; e < end; ++e) {
    WideType<T> sum = 0;
    for (int32_t s = map.start[e]; s < map.start[e + 1]; ++s) {
      const WideType<T> value = Take(map.shape, map.source[s], values);
      // 0 + value would turn -0 into +0.
      sum = s == map.start[e] ? value : sum + value;
      not_real = std::min(not_real, NotReal(map.source[s], values));
    }
    out[e] = ConvertTo<T>(sum);
  }
  return not_real;
}

}  // namespace

ValueStats SumValues(int cores, const ValueMap& map, DType dtype, const std::byte* values,
                     std::byte* out) {
  std::vector<int64_t> not_real(cores, kNone);
  const int64_t elements = map.shape.elements;
  ParallelFor(cores, cores, [&](int64_t part) {
    const int64_t begin = elements * part / cores;
    const int64_t end = elements * (part + 1) / cores;
    not_real[part] = DispatchDType(dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return SumRange(map, begin, end, reinterpret_cast<const T*>(values),
                      reinterpret_cast<T*>(out));
    });
  });
  const int64_t first = *std::min_element(not_real.begin(), not_real.end());
  return {first == kNone ? -1 : first};
}

EntryStats SetEntries(const EntryList& entries, const AnyMatrix& a) {
  EntryStats stats;
  const size_t size = SizeOf(entries.dtype);
  const auto entry = [&](int64_t k) {
    return a.data + (entries.rows[k] + entries.cols[k] * a.ld) * static_cast<int64_t>(size);
  };
  for (int64_t k = 0; k < entries.count; ++k) {
    if (IsInside(entries, k, a)) {
      std::memcpy(entry(k), entries.values + k * size, size);
    } else if (stats.first_outside < 0) {
      stats.first_outside = k;
    }
  }
  for (int64_t k = 0; k < entries.count && stats.first_contradicted < 0; ++k) {
    if (!IsInside(entries, k, a)) continue;
    if (std::memcmp(entry(k), entries.values + k * size, size) != 0) stats.first_contradicted = k;
  }
  return stats;
}

}  // namespace crout::host
