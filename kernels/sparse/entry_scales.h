// The order in which the scales of an entry's row and column are applied.
#ifndef CROUT_KERNELS_SPARSE_ENTRY_SCALES_H_
#define CROUT_KERNELS_SPARSE_ENTRY_SCALES_H_

namespace crout {

// value * first * second, one product after the other, is in range wherever row * value * column
// is. The product of the scales alone may not be: it can be Inf for an entry of 0.
struct EntryScales {
  double first;
  double second;
};

// size: the entry's modulus, or its larger part. An entry below 1 meets the larger scale first, any
// other the smaller one. Also for device code.
constexpr EntryScales InOrder(double size, double row, double column) {
  const bool row_first = (size < 1) == (row >= column);
  return row_first ? EntryScales{row, column} : EntryScales{column, row};
}

}  // namespace crout

#endif  // CROUT_KERNELS_SPARSE_ENTRY_SCALES_H_
