// What a block holds that KLU factored into.
#ifndef CROUT_KERNELS_HOST_KLU_KLU_FACTOR_H_
#define CROUT_KERNELS_HOST_KLU_KLU_FACTOR_H_

#include <klu.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/sparse/analysis.h"

namespace crout::host {

// At the begin of the block; KluArena's memory is what comes after it. Pointers within are those of
// when the factor was made: KluNumeric() has them as they are now.
struct alignas(64) KluHeader {
  const std::byte* made_at;    // where the block was
  const klu_numeric* numeric;  // null: no factor
  size_t used;                 // bytes of the block
  // When pivots were chosen: the summary's.
  double growth;
  int64_t interchanges;
};

// The order of elimination in KLU's terms: one block, rows and columns as the analysis has them.
// References `analysis`, and must not be copied.
class KluOrder {
 public:
  explicit KluOrder(const Analysis& analysis);
  KluOrder(const KluOrder&) = delete;  // `symbolic_` points into it.
  KluOrder& operator=(const KluOrder&) = delete;

  klu_symbolic* symbolic() { return &symbolic_; }

 private:
  int blocks_[2];
  // Entries of L that KLU allocates at first. The piece grows in place, and KluArena polls `stop`
  // then.
  double guess_ = 0;
  klu_symbolic symbolic_{};
};

// A factor for one call: its numbers are shared, its work space is the call's own.
class KluNumeric {
 public:
  // work: of KluSolveWorkspaceBytes, for solves. Null: the block's own, of which only who may
  // change the factor can make use.
  KluNumeric(std::span<const std::byte> block, std::byte* work);
  KluNumeric(const KluNumeric&) = delete;  // `numeric_` points into it.
  KluNumeric& operator=(const KluNumeric&) = delete;

  bool exists() const { return exists_; }
  klu_numeric* numeric() { return &numeric_; }

 private:
  template <class P>
  P* Here(P* made) const;

  const std::byte* const block_;
  const std::byte* made_at_ = nullptr;
  bool exists_ = false;
  void* columns_[1] = {nullptr};
  klu_numeric numeric_{};
};

// Entries of one column of L, below its diagonal, or of U, above it, as KLU packs them, in units of
// one number: `length` rows, of int, and from the next unit on as many numbers.
template <class T>
struct KluColumn {
  KluColumn(const klu_numeric& numeric, const int* starts, const int* lengths, int64_t k)
      : length(lengths[k]) {
    T* const units = static_cast<T*>(numeric.LUbx[0]) + starts[k];
    row = reinterpret_cast<const int*>(units);
    value = units + (length * sizeof(int) + sizeof(T) - 1) / sizeof(T);
  }

  int64_t length;
  const int* row;
  T* value;
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_KLU_KLU_FACTOR_H_
