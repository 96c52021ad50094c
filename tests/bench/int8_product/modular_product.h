// SPDX-License-Identifier: Apache-2.0

// Products of residues on the INT8 tensor cores of GPUs of compute capability 9.0. The products are
// reduced to int8 in registers, so that no int32 product is stored.
#ifndef CROUT_TESTS_BENCH_INT8_PRODUCT_MODULAR_PRODUCT_H_
#define CROUT_TESTS_BENCH_INT8_PRODUCT_MODULAR_PRODUCT_H_

#include <cuda.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "tests/bench/int8_product/residue_system.h"

namespace crout::int8_product {

// One block computes a tile of kTileRows rows and kTileColumns columns of C. Blocks with the same
// rows form a cluster.
inline constexpr int kTileRows = 256;
inline constexpr int kTileColumns = 128;
inline constexpr int kMaxCluster = 4;
inline constexpr int kMaxClusterColumns = kMaxCluster * kTileColumns;
inline constexpr int kTileInner = 128;
inline constexpr int64_t kTileWords = int64_t{kTileRows} * kTileColumns / 4;

// Schedules of ModularProduct(). A cluster loads the rows that its blocks share once.
enum class Schedule {
  kPairs,         // clusters of two blocks; a stage is released when the next one is issued
  kPairsEarly,    // clusters of two blocks; a stage is released when its own products end
  kQuadsEarly,    // clusters of four blocks, as kPairsEarly
  kSinglesEarly,  // no clusters, as kPairsEarly
};
inline constexpr const char* kScheduleNames[] = {"pairs", "pairs early", "quads early",
                                                 "singles early"};
inline constexpr int kSchedules = 4;

// The four elements of a word of residues: rows row and row + 1 of columns column and column + 8.
struct FragmentPlace {
  int64_t row;
  int64_t column;
};

// Returns the place of word `word` in a plane of residues with `rows` rows. A plane stores the
// tiles one after another, a column of tiles after another. A tile stores 16 bytes of each thread
// of a warpgroup in turn, in the order of the registers that wgmma accumulates in.
__host__ __device__ inline FragmentPlace PlaceOfWord(int64_t word, int64_t rows) {
  const int64_t tile = word / kTileWords;
  const int in_tile = static_cast<int>(word % kTileWords);
  const int64_t tile_rows = rows / kTileRows;
  const int lane = in_tile / 4 % 32;
  const int warp = in_tile / 128 % 4;
  const int group = in_tile / 512 % 8 * 4 + in_tile % 4;  // eight rows of C
  const int warpgroup = in_tile / 4096;
  return {tile % tile_rows * kTileRows + group * 8 + lane % 4 * 2,
          tile / tile_rows * kTileColumns + warpgroup * 64 + warp * 16 + lane / 4};
}

// The operands of ModularProduct(). The residues of A and B are in planes, one for each modulus.
// A plane stores the `inner` residues of each row of A, or of each column of B, one after another.
struct ModularOperands {
  CUtensorMap rows;
  CUtensorMap columns;
  int64_t row_count;
  int inner;
  Schedule schedule;
};

// rows is a multiple of kTileRows, columns of kMaxClusterColumns, inner of kTileInner.
ModularOperands MakeModularOperands(const int8_t* a, int64_t rows, const int8_t* b, int64_t columns,
                                    int inner, int moduli, Schedule schedule);

// Computes the residues of columns [first, first + columns) of A B for all moduli into planes of
// rows x columns elements.
void ModularProduct(const ModularOperands& operands, const ResidueSystem& system, int64_t first,
                    int64_t columns, uint4* residues, cudaStream_t stream);

}  // namespace crout::int8_product

#endif  // CROUT_TESTS_BENCH_INT8_PRODUCT_MODULAR_PRODUCT_H_
