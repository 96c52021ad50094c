// SPDX-License-Identifier: Apache-2.0

// Predicated loads from device memory. Written as `valid ? *from : 0`, a series of loads becomes a
// series of branches, which take longer than the memory accesses.
#ifndef CROUT_KERNELS_CUDA_OPS_LOAD_IF_CUH_
#define CROUT_KERNELS_CUDA_OPS_LOAD_IF_CUH_

namespace crout::cuda {

// Executes the PTX instruction `load`, whose result has the given register constraint, if `valid`;
// otherwise the value stays 0.
#define CROUT_LOAD_IF(load, constraint, ...)                                               \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p " load " %0, [%1];\n\t}" \
               : "+" constraint(value)                                                     \
               : "l"(from), "r"(static_cast<int>(valid))                                   \
               : __VA_ARGS__)

// Returns 0 if not `valid`; `from` is then not accessed. For memory that no kernel writes while
// this one runs.
__device__ inline double LoadConstantIf(bool valid, const double* from) {
  double value = 0;
  CROUT_LOAD_IF("ld.global.nc.f64", "d");
  return value;
}
__device__ inline double LoadConstantIf(bool valid, const float* from) {
  float value = 0;
  CROUT_LOAD_IF("ld.global.nc.f32", "f");
  return value;
}

// Loads past the L1 cache: reads data that other blocks wrote before this block synchronized with
// them.
__device__ inline double LoadFreshIf(bool valid, const double* from) {
  double value = 0;
  CROUT_LOAD_IF("ld.global.cg.f64", "d", "memory");
  return value;
}
__device__ inline double LoadFreshIf(bool valid, const float* from) {
  float value = 0;
  CROUT_LOAD_IF("ld.global.cg.f32", "f", "memory");
  return value;
}

#undef CROUT_LOAD_IF

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_LOAD_IF_CUH_
