// Loads from device memory behind a predicate. Written as `valid ? *from : 0`, many of them in a
// row become as many branches, which take longer than the memory does.
#ifndef CROUT_KERNELS_CUDA_LOAD_IF_CUH_
#define CROUT_KERNELS_CUDA_LOAD_IF_CUH_

namespace crout {

// 0 where not `valid`; `from` is then not looked at. For what no kernel writes while this one runs.
__device__ inline double LoadConstantIf(bool valid, const double* from) {
  double value = 0;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p ld.global.nc.f64 %0, [%1];\n\t}"
               : "+d"(value)
               : "l"(from), "r"(static_cast<int>(valid)));
  return value;
}
__device__ inline double LoadConstantIf(bool valid, const float* from) {
  float value = 0;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p ld.global.nc.f32 %0, [%1];\n\t}"
               : "+f"(value)
               : "l"(from), "r"(static_cast<int>(valid)));
  return value;
}

// Past the first-level cache: what other blocks wrote before this one waited for them.
__device__ inline double LoadSharedIf(bool valid, const double* from) {
  double value = 0;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p ld.global.cg.f64 %0, [%1];\n\t}"
               : "+d"(value)
               : "l"(from), "r"(static_cast<int>(valid))
               : "memory");
  return value;
}
__device__ inline double LoadSharedIf(bool valid, const float* from) {
  float value = 0;
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.s32 p, %2, 0;\n\t@p ld.global.cg.f32 %0, [%1];\n\t}"
               : "+f"(value)
               : "l"(from), "r"(static_cast<int>(valid))
               : "memory");
  return value;
}

}  // namespace crout

#endif  // CROUT_KERNELS_CUDA_LOAD_IF_CUH_
