// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/lu_blocking.h"

#include <algorithm>
#include <limits>

namespace crout::cuda {

LuBlocking LuBlocking::For(DType dtype, int64_t columns, bool tf32_products) {
  // Panels have two blocks in matrices of more than `beyond` columns while at least `left` columns
  // are left.
  struct TwoBlocks {
    int64_t beyond;
    int64_t left;
  };
  constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
  const TwoBlocks two = IsComplex(dtype)           ? TwoBlocks{kNever, kNever}
                        : dtype == DType::kFloat64 ? TwoBlocks{12288, 8192}
                                                   : TwoBlocks{24576, 16384};
  // With fewer columns, products take little of the time.
  const bool single = RealOf(dtype) == DType::kFloat32 && columns > 4096;
  return {.block = IsComplex(dtype) && columns <= 6144 ? 256 : 512,
          .two_blocks_left = columns > two.beyond ? two.left : kNever,
          .right_looking = int64_t{1} << 20,
          .look_ahead = columns > 1024,
          .tf32 = single && !tf32_products,
          .overlap_left = std::max<int64_t>(12288, columns / 2),
          .one_tf32_product = single && tf32_products};
}

PanelLayout LuBlocking::panels(int64_t columns) const {
  const int64_t width = PanelLayout::kMaxBlocks * block;
  const int64_t end =
      columns < two_blocks_left ? 0 : ((columns - two_blocks_left) / width + 1) * width;
  return {columns, block, std::min(end, columns / width * width)};
}

}  // namespace crout::cuda
