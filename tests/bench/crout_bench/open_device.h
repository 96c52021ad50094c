// SPDX-License-Identifier: Apache-2.0

// Opens the device of a benchmark by its name in the service.
#ifndef CROUT_TESTS_BENCH_CROUT_BENCH_OPEN_DEVICE_H_
#define CROUT_TESTS_BENCH_CROUT_BENCH_OPEN_DEVICE_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/host/device/host_device.h"
#ifdef CROUT_HAVE_CUDA
#include "kernels/cuda/device/cuda_device.h"
#endif

namespace crout::bench {

// Opens "host", with `threads` threads (0: one per core), or "cuda:N". Returns INVALID_ARGUMENT for
// another name, UNIMPLEMENTED for a GPU in a build without CUDA, and the errors of the device.
inline absl::StatusOr<std::unique_ptr<Device>> OpenDevice(const std::string& name,
                                                          int threads = 0) {
  if (name == "host") return host::MakeDevice({.threads = threads});
  int ordinal = 0;
  if (!absl::StartsWith(name, "cuda:") || !absl::SimpleAtoi(name.substr(5), &ordinal)) {
    return absl::InvalidArgumentError(absl::StrCat("'", name, "' is neither host nor cuda:N"));
  }
#ifdef CROUT_HAVE_CUDA
  return cuda::MakeDevice(ordinal, cuda::Options());
#else
  return absl::UnimplementedError("this build has no CUDA support");
#endif
}

}  // namespace crout::bench

#endif  // CROUT_TESTS_BENCH_CROUT_BENCH_OPEN_DEVICE_H_
