// SPDX-License-Identifier: Apache-2.0

// Data shared by the kernels of the iterative Crout method: the run's state in device memory, the
// parameters that every kernel reads, and the elements of a warm start.
#ifndef CROUT_KERNELS_CUDA_ICM_ICM_STATE_H_
#define CROUT_KERNELS_CUDA_ICM_ICM_STATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/cuda/device/host_signals.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"

namespace crout::cuda {

inline constexpr int kIcmTile = 32;  // sections consist of whole tiles, except the last one
inline constexpr int64_t kIcmMaxSection = 1024;

enum class IcmEnd : int32_t { kDone, kSweepLimit, kNotFinite };

// At the start of the workspace. The kernels of a run execute in order on one stream, and each
// reads what the previous ones wrote.
struct IcmState {
  int32_t end;           // IcmEnd
  int32_t stopped;       // the host requested a stop
  int32_t info;          // LAPACK's
  int32_t swept;         // the diagonal section converged by sweeps; `diagonal` selects the buffer
  int32_t diagonal;      // index of the buffer with the result
  int32_t committed;     // and its pivots satisfy the rule: no search by columns is needed
  int32_t moves;         // rows that the section's interchanges move
  int32_t interchanges;  // in the whole run
  unsigned long long position;  // PositionKey of the element that ended the run
  // The host uses these members to read the report: offsets in the workspace, and the run's shape.
  int64_t sweeps;
  int64_t pivots;
  int64_t sections;
  int64_t section_size;
  int64_t bad_elements;  // 0: not counted
  int64_t variant;
  int64_t block_size;
  int64_t warm;  // int64_t like the others: padding would be read uninitialized by the host.
  // Results of a sweep, in three alternating slots. `changed`: the lowest index min(i, j) of an
  // element whose bits changed. `bad`: the first bad diagonal element. `open`: the
  // PositionKey of the first element that has not converged.
  int32_t changed[3];
  int32_t bad[3];
  unsigned long long open[3];
};

// Orders elements by min(i, j), which determines their depth in the recurrence.
constexpr unsigned long long PositionKey(int64_t i, int64_t j) {
  return (static_cast<unsigned long long>(i < j ? i : j) << 42) |
         (static_cast<unsigned long long>(i) << 21) | static_cast<unsigned long long>(j);
}
inline constexpr unsigned long long kNoPosition = ~0ULL;
inline constexpr int32_t kNoIndex = 0x7fffffff;

// The factors that a warm start begins with. Element (i, j) refers to the matrix being factored,
// whose rows have moved since: origin[i] is the position of its row i in the start.
template <class T>
struct IcmStart {
  const T* lu = nullptr;  // null: a cold start
  int64_t ld = 1;
  bool unit_in_u = true;
  const int32_t* origin = nullptr;
};

// Same meaning as in kernels/icm/tolerances.h.
struct IcmTolerances {
  double relative = 0;
  double absolute = 0;

  // Returns true if converged elements must not change any more.
  constexpr bool exact() const { return relative == 0 && absolute == 0; }
};

// The same for every kernel of a run.
struct IcmRun {
  IcmState* state = nullptr;
  HostSignals host;
  int32_t* sweeps = nullptr;  // sections x sections
  int32_t* pivots = nullptr;  // sections
  int64_t sections = 0;
  int64_t section_size = 0;
  int32_t* bad_elements = nullptr;  // sections; null if bad elements are not counted
  MethodVariant variant = MethodVariant::kFast;
  int block_size = 0;
  bool warm = false;
  PivotCriterion criterion;
  IcmTolerances tolerances;
  int64_t sweep_limit = 0;  // 0: limited only by the recurrence's depth
};

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_ICM_ICM_STATE_H_
