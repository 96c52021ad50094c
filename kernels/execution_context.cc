// SPDX-License-Identifier: Apache-2.0

#include "kernels/execution_context.h"

#include <atomic>

namespace crout {

void DeviceReport::ReportColumns(int64_t columns) {
  std::atomic_ref(reported_columns).store(columns, std::memory_order_relaxed);
}

int64_t DeviceReport::ColumnsDone() {
  return std::atomic_ref(reported_columns).load(std::memory_order_relaxed);
}

}  // namespace crout
