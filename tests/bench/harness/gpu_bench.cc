// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/harness/gpu_bench.h"

#include <random>

#include "kernels/algorithm_registry.h"
#include "kernels/jobs/factorize.h"

namespace crout {

DeviceMatrix::DeviceMatrix(ExecutionContext& context, int64_t n) : n_(n), host_(n * n) {
  std::mt19937_64 generator(n);
  for (double& v : host_) v = static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
  device_ = Check(context.device().memory().Allocate(bytes()));
  Check(context.ops().CopyToDevice(host_.data(), device_.data(), bytes()));
  Check(context.Synchronize());
}

Buffer DeviceMatrix::Copy(ExecutionContext& context) const {
  Buffer copy = Check(context.device().memory().Allocate(bytes()));
  Check(context.ops().CopyOnDevice(device_.data(), copy.data(), bytes()));
  return copy;
}

Factorization FactorOnce(ExecutionContext& context, Buffer upload, const PackedMatrix& shape,
                         const TriangularSolver* prepare) {
  FactorizeOptions options;
  options.algorithm = Check(FindAlgorithm(context.device(), "getrf", shape.dtype, shape.rows));
  options.prepare = prepare;
  KernelTimings timings;
  return Check(Factorize(
      context, std::move(upload), shape, options, [] { return false; }, timings));
}

}  // namespace crout
