// SPDX-License-Identifier: Apache-2.0

// Contents of a block that holds a KLU factor.
#ifndef CROUT_KERNELS_HOST_KLU_KLU_FACTOR_H_
#define CROUT_KERNELS_HOST_KLU_KLU_FACTOR_H_

#include <klu.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/sparse/analysis.h"

namespace crout::host {

// Header at the start of the block; the memory of KluArena follows. Pointers are those valid when
// the factor was made. KluNumeric adjusts them to the block's current address.
struct alignas(64) KluHeader {
  const std::byte* original_address;  // address of the block at that time
  const klu_numeric* numeric;         // null: no factor
  size_t used;                        // bytes of the block in use
  // Summary values from when the pivots were chosen.
  double growth;
  int64_t interchanges;
};

// Elimination order in KLU's form: one block, with the analysis's rows and columns. Refers to
// `analysis`, and must not be copied.
class KluOrder {
 public:
  explicit KluOrder(const Analysis& analysis);
  KluOrder(const KluOrder&) = delete;  // `symbolic_` points into it.
  KluOrder& operator=(const KluOrder&) = delete;

  klu_symbolic* symbolic() { return &symbolic_; }

 private:
  int blocks_[2];
  // Entries of L that KLU allocates at first. The piece grows in place; KluArena polls `stop` at
  // each growth.
  double guess_ = 0;
  klu_symbolic symbolic_{};
};

// A factor as used by one call: shares the values, and has its own work space.
class KluNumeric {
 public:
  // `work` has KluSolveWorkspaceBytes() bytes, for solves. Null: uses the block's own work space;
  // only for callers that may modify the factor.
  KluNumeric(std::span<const std::byte> block, std::byte* work);
  KluNumeric(const KluNumeric&) = delete;  // `numeric_` points into it.
  KluNumeric& operator=(const KluNumeric&) = delete;

  bool exists() const { return exists_; }
  klu_numeric* numeric() { return &numeric_; }

 private:
  template <class P>
  P* Relocate(P* made) const;

  const std::byte* const block_;
  const std::byte* original_address_ = nullptr;
  bool exists_ = false;
  void* columns_[1] = {nullptr};
  klu_numeric numeric_{};
};

// Entries of one column of L below its diagonal, or of U above it, in KLU's packed form. In units
// of one number: `length` int rows, then, from the next unit on, `length` values.
template <class T>
struct KluColumn {
  KluColumn(const klu_numeric& numeric, const int* starts, const int* lengths, int64_t k)
      : length(numeric.LUbx[0] == nullptr ? 0 : lengths[k]) {
    if (length == 0) return;  // KLU makes no columns, and no lengths, for a matrix of order 1.
    T* const units = static_cast<T*>(numeric.LUbx[0]) + starts[k];
    row = reinterpret_cast<const int*>(units);
    value = units + (length * sizeof(int) + sizeof(T) - 1) / sizeof(T);
  }

  int64_t length;
  const int* row = nullptr;
  T* value = nullptr;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_KLU_FACTOR_H_
