// SPDX-License-Identifier: Apache-2.0

// Entries of L and U of a KLU factor, for downloads.
#ifndef CROUT_KERNELS_HOST_KLU_KLU_ENTRIES_H_
#define CROUT_KERNELS_HOST_KLU_KLU_ENTRIES_H_

#include <cstdint>
#include <span>

#include "kernels/host/klu/klu_factor.h"

namespace crout::host {

// Implements the interface of FactorEntries (kernels/sparse/factor_entries.h) for an existing
// factor, which must outlive this object.
template <class T>
class KluEntries {
 public:
  explicit KluEntries(const klu_numeric& numeric) : numeric_(numeric) {}

  std::span<const int32_t> rows() const { return {numeric_.Pnum, static_cast<size_t>(numeric_.n)}; }

  // Visits columns k in ascending order, in which KLU stores both factors.
  template <class Visit>
  void VisitLower(const Visit& visit) const {
    for (int64_t k = 0; k < numeric_.n; ++k) VisitColumn(numeric_.Lip, numeric_.Llen, k, visit);
  }
  template <class Visit>
  void VisitUpper(const Visit& visit) const {
    const T* const diagonal = static_cast<const T*>(numeric_.Udiag);
    for (int64_t k = 0; k < numeric_.n; ++k) {
      VisitColumn(numeric_.Uip, numeric_.Ulen, k, visit);
      visit(k, k, diagonal[k]);
    }
  }

 private:
  template <class Visit>
  void VisitColumn(const int* starts, const int* lengths, int64_t k, const Visit& visit) const {
    if (numeric_.LUbx[0] == nullptr) return;  // order 1
    const KluColumn<T> column(numeric_, starts, lengths, k);
    for (int64_t i = 0; i < column.length; ++i) {
      visit(int64_t{column.row[i]}, k, column.value[i]);
    }
  }

  const klu_numeric& numeric_;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_KLU_ENTRIES_H_
