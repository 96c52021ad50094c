// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/klu/klu_factor.h"

#include <algorithm>

namespace crout::host {

// KLU takes non-const pointers but does not change the data.
KluOrder::KluOrder(const Analysis& analysis) : blocks_{0, static_cast<int>(analysis.n)} {
  symbolic_.symmetry = -1;
  symbolic_.est_flops = -1;
  symbolic_.lnz = guess_;
  symbolic_.unz = guess_;
  symbolic_.Lnz = &guess_;
  symbolic_.n = static_cast<int>(analysis.n);
  symbolic_.nz = static_cast<int>(analysis.nonzeros);
  symbolic_.P = const_cast<int*>(analysis.row_order.data());
  symbolic_.Q = const_cast<int*>(analysis.column_order.data());
  symbolic_.R = blocks_;
  symbolic_.nblocks = 1;
  symbolic_.maxblock = symbolic_.n;
  symbolic_.ordering = 2;  // given
  symbolic_.structural_rank = symbolic_.n;
}

template <class P>
P* KluNumeric::Here(P* made) const {
  if (made == nullptr) return nullptr;
  const auto* const there = reinterpret_cast<const std::byte*>(made);
  return reinterpret_cast<P*>(const_cast<std::byte*>(block_ + (there - made_at_)));
}

KluNumeric::KluNumeric(std::span<const std::byte> block, std::byte* work) : block_(block.data()) {
  const KluHeader& header = *reinterpret_cast<const KluHeader*>(block_);
  made_at_ = header.made_at;
  exists_ = header.numeric != nullptr;
  if (!exists_) return;
  numeric_ = *Here(header.numeric);
  numeric_.Pnum = Here(numeric_.Pnum);
  numeric_.Pinv = Here(numeric_.Pinv);
  numeric_.Lip = Here(numeric_.Lip);
  numeric_.Uip = Here(numeric_.Uip);
  numeric_.Llen = Here(numeric_.Llen);
  numeric_.Ulen = Here(numeric_.Ulen);
  numeric_.LUsize = Here(numeric_.LUsize);
  // For a matrix of order 1, the factor is only Udiag.
  void** const columns = Here(numeric_.LUbx);
  columns_[0] = Here(static_cast<std::byte*>(columns[0]));
  numeric_.LUbx = columns_;
  numeric_.Udiag = Here(static_cast<std::byte*>(numeric_.Udiag));
  numeric_.Rs = Here(numeric_.Rs);
  numeric_.Offp = Here(numeric_.Offp);
  numeric_.Offi = Here(numeric_.Offi);
  numeric_.Offx = Here(static_cast<std::byte*>(numeric_.Offx));
  numeric_.Work = work != nullptr ? work : Here(static_cast<std::byte*>(numeric_.Work));
  numeric_.Xwork = numeric_.Work;
  numeric_.Iwork = nullptr;  // used only by factorizations
}

}  // namespace crout::host
