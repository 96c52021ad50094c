#include "kernels/host/ops/entries.h"

#include <cstring>

#include "kernels/scalar.h"

namespace crout::host {
namespace {

bool IsInside(const EntryList& entries, int64_t k, const AnyMatrix& a) {
  return entries.rows[k] >= 0 && entries.rows[k] < a.rows && entries.cols[k] >= 0 &&
         entries.cols[k] < a.cols;
}

}  // namespace

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
