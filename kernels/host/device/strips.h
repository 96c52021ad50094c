// SPDX-License-Identifier: Apache-2.0

// Divides work on many columns into strips. Between strips, the job can be stopped and other jobs
// can run.
#ifndef CROUT_KERNELS_HOST_DEVICE_STRIPS_H_
#define CROUT_KERNELS_HOST_DEVICE_STRIPS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/execution_context.h"
#include "kernels/host/device/executor.h"
#include "kernels/matrix.h"
#include "kernels/stop_requested.h"
#include "kernels/util/status_macros.h"

namespace crout::host {

// Real operations between two checks: at most a second on a slow core.
inline constexpr double kStripFlops = 5e9;

// Returns the real operations of one multiply-add.
constexpr double MultiplyAddFlops(DType dtype) { return IsComplex(dtype) ? 8 : 2; }

// Returns the real operations of a solve with a factor for one column of `b`.
constexpr double SubstitutionFlops(const AnyMatrix& b) {
  return MultiplyAddFlops(b.dtype) * static_cast<double>(b.rows) * static_cast<double>(b.rows);
}

// Returns the number of columns of a strip if each column takes `flops` real operations. A multiple
// of 16, which suits the kernels of BLAS. Depends only on the problem, so that the bits of a result
// do not depend on the load.
inline int64_t StripColumns(double flops) {
  constexpr int64_t kLeast = 16;
  constexpr double kMost = 1e15;
  const auto columns = static_cast<int64_t>(std::min(kMost, kStripFlops / std::max(1.0, flops)));
  return std::max(kLeast, columns / kLeast * kLeast);
}

// Columns [begin, begin + count) of `m`.
inline AnyMatrix Columns(const AnyMatrix& m, int64_t begin, int64_t count) {
  AnyMatrix columns = m;
  if (begin > 0) columns.data += begin * m.ld * static_cast<int64_t>(SizeOf(m.dtype));
  columns.cols = count;
  return columns;
}

// Calls f(cores, begin, count) for each strip of the `cols` columns, in order. Each column takes
// `flops` real operations. Other work of the executor can run between two strips. CANCELLED if the
// context's job is stopped before the last strip.
template <class F>
absl::Status ForStrips(Executor& executor, Width width, const ExecutionContext& context,
                       int64_t cols, double flops, const F& f) {
  const int64_t strip = StripColumns(flops);
  for (int64_t begin = 0; begin < cols; begin += strip) {
    if (begin > 0) {
      CROUT_RETURN_IF_ERROR(CheckNotStopped([&] { return context.stop_requested(); }));
    }
    executor.Run(width, [&](int cores) { f(cores, begin, std::min(strip, cols - begin)); });
  }
  return absl::OkStatus();
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_DEVICE_STRIPS_H_
