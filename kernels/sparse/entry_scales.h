// SPDX-License-Identifier: Apache-2.0

// Order in which the scales of an entry's row and column are applied.
#ifndef CROUT_KERNELS_SPARSE_ENTRY_SCALES_H_
#define CROUT_KERNELS_SPARSE_ENTRY_SCALES_H_

namespace crout {

// value * first * second, evaluated left to right, is in range whenever row * value * column is.
// The product of the two scales can overflow to Inf, which would give NaN for an entry of 0.
struct EntryScales {
  double first;
  double second;
};

// `size` is the entry's modulus or its larger part. Entries below 1 are multiplied by the larger
// scale first, others by the smaller one. Usable in device code.
constexpr EntryScales InOrder(double size, double row, double column) {
  const bool row_first = (size < 1) == (row >= column);
  return row_first ? EntryScales{row, column} : EntryScales{column, row};
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ENTRY_SCALES_H_
