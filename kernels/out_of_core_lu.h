// SPDX-License-Identifier: Apache-2.0

// LU of matrices in host memory by a GPU whose memory cannot hold them.
#ifndef CROUT_KERNELS_OUT_OF_CORE_LU_H_
#define CROUT_KERNELS_OUT_OF_CORE_LU_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/execution_context.h"
#include "kernels/lu_parameters.h"
#include "kernels/matrix.h"
#include "kernels/numerical_method.h"
#include "kernels/stop_requested.h"

namespace crout {

// Factors by block columns in a fixed amount of device memory, which it holds until its
// destruction. One thread at a time calls Factor; the other functions are thread-safe.
class OutOfCoreLu {
 public:
  virtual ~OutOfCoreLu() = default;

  // The traits of an LuAlgorithm.
  virtual const MethodTraits& traits() const = 0;

  // Bytes of device memory that it holds.
  virtual size_t device_bytes() const = 0;

  // Returns the least device memory, in bytes, that Factor needs for an n x n matrix. An error if
  // no amount suffices.
  virtual absl::StatusOr<size_t> LeastDeviceBytes(DType dtype, int64_t n,
                                                  const LuParameters& parameters) const = 0;

  // Predicted seconds of Factor for a matrix that needs at most device_bytes().
  virtual double PredictSeconds(DType dtype, int64_t n) const = 0;

  // Factors `a` as LuAlgorithm::Factor does, and returns LAPACK's info. `a` is in the device's
  // staging memory, not empty, and needs at most device_bytes(). `ipiv` is in host memory. Blocks
  // until all work has ended, on errors too. Polls `stop`, and before this stores the number of
  // final columns in `report`, several times for each block column. Returns CANCELLED if `stop`
  // requests it, and UNAVAILABLE if the device was lost.
  virtual absl::StatusOr<int64_t> Factor(const AnyMatrix& a, int64_t* ipiv,
                                         const LuParameters& parameters, DeviceReport& report,
                                         StopRequested stop) = 0;
};

}  // namespace crout

#endif  // CROUT_KERNELS_OUT_OF_CORE_LU_H_
