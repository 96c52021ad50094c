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
P* KluNumeric::Relocate(P* made) const {
  if (made == nullptr) return nullptr;
  const auto* const there = reinterpret_cast<const std::byte*>(made);
  return reinterpret_cast<P*>(const_cast<std::byte*>(block_ + (there - original_address_)));
}

KluNumeric::KluNumeric(std::span<const std::byte> block, std::byte* work) : block_(block.data()) {
  const KluHeader& header = *reinterpret_cast<const KluHeader*>(block_);
  original_address_ = header.original_address;
  exists_ = header.numeric != nullptr;
  if (!exists_) return;
  numeric_ = *Relocate(header.numeric);
  numeric_.Pnum = Relocate(numeric_.Pnum);
  numeric_.Pinv = Relocate(numeric_.Pinv);
  numeric_.Lip = Relocate(numeric_.Lip);
  numeric_.Uip = Relocate(numeric_.Uip);
  numeric_.Llen = Relocate(numeric_.Llen);
  numeric_.Ulen = Relocate(numeric_.Ulen);
  numeric_.LUsize = Relocate(numeric_.LUsize);
  // For a matrix of order 1, the factor is only Udiag.
  void** const columns = Relocate(numeric_.LUbx);
  columns_[0] = Relocate(static_cast<std::byte*>(columns[0]));
  numeric_.LUbx = columns_;
  numeric_.Udiag = Relocate(static_cast<std::byte*>(numeric_.Udiag));
  numeric_.Rs = Relocate(numeric_.Rs);
  numeric_.Offp = Relocate(numeric_.Offp);
  numeric_.Offi = Relocate(numeric_.Offi);
  numeric_.Offx = Relocate(static_cast<std::byte*>(numeric_.Offx));
  numeric_.Work = work != nullptr ? work : Relocate(static_cast<std::byte*>(numeric_.Work));
  numeric_.Xwork = numeric_.Work;
  numeric_.Iwork = nullptr;  // used only by factorizations
}

}  // namespace crout::host
