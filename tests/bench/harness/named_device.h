// SPDX-License-Identifier: Apache-2.0

// Opens a device by its name.
#ifndef CROUT_TESTS_BENCH_HARNESS_NAMED_DEVICE_H_
#define CROUT_TESTS_BENCH_HARNESS_NAMED_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "kernels/host/device/host_device.h"
#include "tests/bench/harness/bench_result.h"
#ifdef CROUT_HAVE_CUDA
#include "kernels/cuda/device/cuda_device.h"
#endif

namespace crout {

// Opens "host" or "cuda:N", a device that `croutd --devices` accepts. Exits on an error.
inline std::unique_ptr<Device> OpenDevice(const std::string& name) {
  if (name == "host") return host::MakeDevice({});
  absl::string_view number = name;
  int ordinal = 0;
  if (!absl::ConsumePrefix(&number, "cuda:") || !absl::SimpleAtoi(number, &ordinal)) {
    Check(absl::InvalidArgumentError(absl::StrCat("'", name, "' is not host or cuda:N")));
  }
#ifdef CROUT_HAVE_CUDA
  return Check(cuda::MakeDevice(ordinal, cuda::Options()));
#else
  Check(absl::UnimplementedError("this build has no CUDA support"));
  return nullptr;
#endif
}

}  // namespace crout

#endif  // CROUT_TESTS_BENCH_HARNESS_NAMED_DEVICE_H_
