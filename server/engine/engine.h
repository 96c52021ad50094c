// SPDX-License-Identifier: Apache-2.0

// The engine: the components that plan, run and cache jobs. No source of server/engine depends on a
// transport.
#ifndef CROUT_SERVER_ENGINE_ENGINE_H_
#define CROUT_SERVER_ENGINE_ENGINE_H_

#include <cstdint>

#include "absl/time/time.h"
#include "kernels/memory.h"
#include "kernels/util/thread_pool.h"
#include "server/engine/cache/analysis_store.h"
#include "server/engine/cache/factor_cache.h"
#include "server/engine/cache/tenant_loads.h"
#include "server/engine/job_events.h"
#include "server/engine/quotas/quotas.h"
#include "server/engine/scheduling/device_pool.h"
#include "server/engine/scheduling/device_scheduler.h"

namespace crout {

// Limits that requests are checked against. Orders are numbers of rows or columns.
struct EngineLimits {
  int64_t max_n = 131072;           // largest order of a matrix that is factored as a dense matrix
  int64_t max_sparse_n = 10000000;  // the same for a sparse matrix
  // Largest order for which dynamic batching is automatic (decision 0032); 0: never automatic.
  // Requests that name the method irr_lu are batched at any order.
  int64_t batching_max_order = 128;
  // Longest wait of an upload for staging memory of the device.
  absl::Duration staging_timeout = absl::Seconds(30);
};

// References to the components. All of them outlive every job and are thread-safe.
struct Engine {
  EngineLimits limits;
  DevicePool& devices;
  FactorCache& cache;
  AnalysisStore& analyses;    // analyses of sparse matrices
  TenantLoads& tenant_loads;  // counts factors and calls of each tenant
  Quotas& quotas;             // limits of the tenants
  JobEvents& events;
  // Runs small jobs of several requests as one batch.
  JobBatcher& batcher;
  // Host memory for replies and text uploads. Its users charge it to DevicePool::host_budget().
  MemoryResource& host_memory;
  // Parses text matrices.
  ThreadPool& parsers;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ENGINE_H_
