#include "kernels/cuda/lu_blocking.h"

#include <algorithm>
#include <limits>

namespace crout {

LuBlocking LuBlocking::For(DType dtype, int64_t columns) {
  // In matrices of more columns than `beyond`, while `left` are left.
  struct Wide {
    int64_t beyond;
    int64_t left;
  };
  const bool doubles = dtype == DType::kFloat64;
  const Wide wide = doubles ? Wide{12288, 8192} : Wide{24576, 16384};
  return {.block = 512,
          .wide = columns > wide.beyond ? wide.left : std::numeric_limits<int64_t>::max(),
          .follow = int64_t{1} << 20,
          .look_ahead = columns > 1024,
          .tf32 = !doubles && columns > 4096,
          .beside = std::max<int64_t>(12288, columns / 2)};
}

PanelLayout LuBlocking::panels(int64_t columns) const {
  const int64_t width = PanelLayout::kMostBlocks * block;
  const int64_t wide_columns = columns < wide ? 0 : ((columns - wide) / width + 1) * width;
  return {columns, block, std::min(wide_columns, columns / width * width)};
}

}  // namespace crout
