// SPDX-License-Identifier: Apache-2.0

// The factors of MUMPS: what the daemon keeps of each, and the memory reserved for it.
#ifndef CROUT_SERVER_GROUPS_MUMPS_FACTORS_H_
#define CROUT_SERVER_GROUPS_MUMPS_FACTORS_H_

#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "kernels/matrix.h"
#include "kernels/memory.h"
#include "kernels/sparse/analysis.h"
#include "kernels/sparse_view.h"
#include "server/groups/rank_group.h"
#include "server/groups/shared_arena.h"

namespace crout {

inline constexpr size_t kMumpsMegabyte = 1'000'000;  // bytes in the megabyte of MUMPS

// Start of a factor's block. The rest of a new block is zero.
struct MumpsHeader {
  uint64_t factor = 0;          // number of the factor in the ranks; 0: there is none
  int32_t rank_megabytes = 0;   // limit of each rank
  size_t sufficient_bytes = 0;  // size of a larger block, if this one was too small; 0: unknown
  // The determinant of B: mantissa 2^exponent.
  std::complex<double> mantissa;
  int64_t exponent = 0;
};

// Offsets in a factor's block. The entries of B (sparse/analysis.h) come first. The ranks read them
// to factor B, and to factor it again after the group was lost. The memory of the rest is never
// touched: the ranks use as much for the factor.
struct MumpsLayout {
  MumpsLayout(const Analysis& analysis, DType dtype);

  // Bytes of a block with this limit of each rank, and the limit for a block.
  size_t BlockBytes(int ranks, int64_t rank_megabytes) const;
  int32_t RankMegabytes(int ranks, size_t block_bytes) const;

  size_t rows;     // 1-based position of each entry, int32
  size_t columns;  // same
  size_t values;
  size_t ranks;  // extends to the end of the block
};

// Bytes that PutMatrix uses besides the block.
size_t EntriesWorkspaceBytes(const Analysis& analysis);

// Writes B to the block, in the factor's type. Returns the largest modulus.
double PutMatrix(const Analysis& analysis, const AnySparse& a, DType dtype, std::byte* block,
                 std::span<std::byte> workspace);

// Permutes and scales the right-hand sides `b` of a system with op(A) into `to`, n x b.cols, for a
// system with B or its transpose. Conjugates them if op does.
void PutRightHandSides(const Analysis& analysis, Op op, bool scale, const AnyMatrix& b,
                       std::byte* to);
// Does the reverse for the solutions `from`.
void TakeSolutions(const Analysis& analysis, Op op, bool scale, const std::byte* from,
                   const AnyMatrix& x);

// Allocates the blocks of factors. A block's factor is freed in the ranks with the block, after the
// job that they run.
class MumpsFactors final : public MemoryResource {
 public:
  // The arguments must outlive the object.
  MumpsFactors(RankGroup& group, SharedArena& arena) : group_(group), arena_(arena) {}

  // A copy would have the number of the same factor.
  bool is_fixed() const override { return true; }
  uint64_t NewFactor() { return ++last_factor_; }

 protected:
  absl::StatusOr<void*> DoAllocate(size_t bytes) override;
  void DoDeallocate(void* data, size_t bytes) override;

 private:
  RankGroup& group_;
  SharedArena& arena_;
  std::atomic<uint64_t> last_factor_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_MUMPS_FACTORS_H_
