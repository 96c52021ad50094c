// SPDX-License-Identifier: Apache-2.0

// The out-of-core LU of a fake device.
#ifndef CROUT_TESTS_SUPPORT_FAKES_FAKE_OUT_OF_CORE_LU_H_
#define CROUT_TESTS_SUPPORT_FAKES_FAKE_OUT_OF_CORE_LU_H_

#include <cstdint>
#include <utility>

#include "kernels/device.h"
#include "kernels/memory.h"
#include "kernels/out_of_core_lu.h"
#include "tests/support/timing/gate.h"

namespace crout::testing {

// Left-looking LU with partial pivoting in float64. Only one block column, as wide as `workspace`
// allows, is in the memory of the device. Stops and reports columns before each block column.
class FakeOutOfCoreLu final : public OutOfCoreLu {
 public:
  // Factor passes `gate` first. `slowness` and `stalls_at` have the meanings that they have in
  // FakeDeviceOptions.
  FakeOutOfCoreLu(const Device& device, Buffer workspace, Gate& gate, double slowness,
                  int64_t stalls_at)
      : device_(device),
        workspace_(std::move(workspace)),
        gate_(gate),
        slowness_(slowness),
        stalls_at_(stalls_at) {}

  const MethodTraits& traits() const override { return traits_; }
  size_t device_bytes() const override { return workspace_.size(); }
  absl::StatusOr<size_t> LeastDeviceBytes(DType dtype, int64_t n,
                                          const LuParameters& parameters) const override;
  double PredictSeconds(DType dtype, int64_t n) const override;
  absl::StatusOr<int64_t> Factor(const AnyMatrix& a, int64_t* ipiv, const LuParameters& parameters,
                                 DeviceReport& report, StopRequested stop) override;

 private:
  const Device& device_;
  const Buffer workspace_;
  Gate& gate_;
  const double slowness_;
  const int64_t stalls_at_;
  const MethodTraits traits_{.name = "crout_lu",
                             .description = "left-looking LU by block columns",
                             .types = {DType::kFloat64},
                             .stoppable = true};
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_FAKES_FAKE_OUT_OF_CORE_LU_H_
