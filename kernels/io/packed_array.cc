// SPDX-License-Identifier: Apache-2.0

#include "kernels/io/packed_array.h"

#include <cstddef>

namespace crout {
namespace {

using Symmetry = MatrixMarketHeader::Symmetry;

// First row stored in column j.
int64_t FirstRow(const MatrixMarketHeader& header, int64_t j) {
  switch (header.symmetry) {
    case Symmetry::kGeneral:
      return 0;
    case Symmetry::kSymmetric:
    case Symmetry::kHermitian:
      return j;
    case Symmetry::kSkewSymmetric:
      return j + 1;
  }
  return 0;
}

}  // namespace

int64_t PackedCount(const MatrixMarketHeader& header) {
  switch (header.symmetry) {
    case Symmetry::kGeneral:
      return header.rows * header.columns;
    case Symmetry::kSymmetric:
    case Symmetry::kHermitian:
      return header.rows * (header.rows + 1) / 2;
    case Symmetry::kSkewSymmetric:
      return header.rows * (header.rows - 1) / 2;
  }
  return 0;
}

std::pair<int64_t, int64_t> PackedPosition(const MatrixMarketHeader& header, int64_t index) {
  int64_t column = 0;
  while (index >= header.rows - FirstRow(header, column)) {
    index -= header.rows - FirstRow(header, column++);
  }
  return {FirstRow(header, column) + index, column};
}

int64_t PackedDiagonal(const MatrixMarketHeader& header, int64_t j) {
  return j * header.rows - j * (j - 1) / 2;
}

std::vector<double> ExpandPacked(const MatrixMarketHeader& header, double mirror_sign,
                                 std::vector<std::vector<double>> blocks, StopCounter& counter) {
  if (header.symmetry == Symmetry::kGeneral && blocks.size() == 1) return std::move(blocks[0]);
  const int64_t n = header.rows;
  std::vector<double> full(n * header.columns);
  const bool mirrored = header.symmetry != Symmetry::kGeneral;
  int64_t row = 0;
  int64_t column = -1;
  int64_t left = 0;  // Values of `column` still to come.
  for (auto& block : blocks) {
    for (const double value : block) {
      if (counter.Stops()) return full;
      while (left == 0) {
        row = FirstRow(header, ++column);
        left = n - row;
      }
      full[row + column * n] = value;
      if (mirrored && row != column) full[column + row * n] = mirror_sign * value;
      ++row;
      --left;
    }
    std::vector<double>().swap(block);
  }
  return full;
}

}  // namespace crout
