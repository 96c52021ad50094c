// Loads from device memory behind a predicate. Written as `valid ? *from : 0`, many of them in a
// row become as many branches, which take longer than the memory does.
#ifndef CROUT_KERNELS_CUDA_OPS_LOAD_IF_CUH_
#define CROUT_KERNELS_CUDA_OPS_LOAD_IF_CUH_

namespace crout::cuda {

// `load` by an instruction of PTX with a register constraint, where `valid`, else 0.
#define CROUT_LOAD_IF(load, constraint, ...)                                               \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p " load " %0, [%1];\n\t}" \
               : "+" constraint(value)                                                     \
               : "l"(from), "r"(static_cast<int>(valid))                                   \
               : __VA_ARGS__)

// 0 where not `valid`; `from` is then not looked at. For what no kernel writes while this one runs.
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

// Past the first-level cache: what other blocks wrote before this one waited for them.
__device__ inline double LoadSharedIf(bool valid, const double* from) {
  double value = 0;
  CROUT_LOAD_IF("ld.global.cg.f64", "d", "memory");
  return value;
}
__device__ inline double LoadSharedIf(bool valid, const float* from) {
  float value = 0;
  CROUT_LOAD_IF("ld.global.cg.f32", "f", "memory");
  return value;
}

#undef CROUT_LOAD_IF

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_OPS_LOAD_IF_CUH_
