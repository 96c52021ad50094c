// SPDX-License-Identifier: Apache-2.0

// Shared memory of this block and of the other blocks of its cluster, accessed by 32-bit addresses.
// With generic pointers, every access would determine the pointer's block again.
#ifndef CROUT_KERNELS_CUDA_DEVICE_SHARED_MEMORY_CUH_
#define CROUT_KERNELS_CUDA_DEVICE_SHARED_MEMORY_CUH_

#include <cstdint>

#include "kernels/cuda/device/complex.h"

namespace crout::cuda {

// This block's instance of S, uninitialized. There is one instance per type.
template <class S>
__device__ S& SharedByBlock() {
  __shared__ S shared;
  return shared;
}

__device__ inline uint32_t SharedAddress(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

// Accesses of 16 bytes.
template <class T>
struct SharedChunk;

template <>
struct SharedChunk<double> {
  static constexpr int kCount = 2;
  static __device__ void Load(uint32_t from, double* x) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x[0]), "=d"(x[1]) : "r"(from));
  }
  static __device__ void Store(uint32_t to, const double* x) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x[0]), "d"(x[1]) : "memory");
  }
};

template <>
struct SharedChunk<float> {
  static constexpr int kCount = 4;
  static __device__ void Load(uint32_t from, float* x) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0]), "=f"(x[1]), "=f"(x[2]), "=f"(x[3])
                 : "r"(from));
  }
  static __device__ void Store(uint32_t to, const float* x) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x[0]), "f"(x[1]),
                 "f"(x[2]), "f"(x[3])
                 : "memory");
  }
};

template <>
struct SharedChunk<Complex<double>> {
  static constexpr int kCount = 1;
  static __device__ void Load(uint32_t from, Complex<double>* x) {
    asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(x->re), "=d"(x->im) : "r"(from));
  }
  static __device__ void Store(uint32_t to, const Complex<double>* x) {
    asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(to), "d"(x->re), "d"(x->im) : "memory");
  }
};

template <>
struct SharedChunk<Complex<float>> {
  static constexpr int kCount = 2;
  static __device__ void Load(uint32_t from, Complex<float>* x) {
    asm volatile("ld.shared.v4.f32 {%0, %1, %2, %3}, [%4];"
                 : "=f"(x[0].re), "=f"(x[0].im), "=f"(x[1].re), "=f"(x[1].im)
                 : "r"(from));
  }
  static __device__ void Store(uint32_t to, const Complex<float>* x) {
    asm volatile("st.shared.v4.f32 [%0], {%1, %2, %3, %4};" ::"r"(to), "f"(x[0].re), "f"(x[0].im),
                 "f"(x[1].re), "f"(x[1].im)
                 : "memory");
  }
};

__device__ inline uint64_t LoadShared64(uint32_t from) {
  uint64_t x;
  asm volatile("ld.shared.b64 %0, [%1];" : "=l"(x) : "r"(from));
  return x;
}

__device__ inline void StoreShared64(uint32_t to, uint64_t x) {
  asm volatile("st.shared.b64 [%0], %1;" ::"r"(to), "l"(x) : "memory");
}

// Instructions that require clusters. Code that contains them is never launched on other GPUs.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
#define CROUT_CLUSTER_ASM(...) asm volatile(__VA_ARGS__)
#else
#define CROUT_CLUSTER_ASM(...) __trap()
#endif

// The address in block `rank` of the cluster that corresponds to `own` in this block.
__device__ inline uint32_t ClusterAddress(uint32_t own, uint32_t rank) {
  uint32_t address = 0;
  CROUT_CLUSTER_ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(own), "r"(rank));
  return address;
}

// A barrier in shared memory. A phase ends once one thread has arrived and all bytes that it
// announced have arrived. Bytes of a phase may arrive before the announcement.
class TransactionBarrier {
 public:
  __device__ explicit TransactionBarrier(uint32_t address) : address_(address) {}

  // Called by one thread. Call FenceInit() and SyncCluster() before other threads use the
  // barrier.
  __device__ void Start() const {
    CROUT_CLUSTER_ASM("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_) : "memory");
  }
  __device__ static void FenceInit() {
    CROUT_CLUSTER_ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __device__ void ExpectBytes(uint32_t bytes) const {
    CROUT_CLUSTER_ASM(
        "{.reg .b64 state;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;}" ::"r"(address_),
        "r"(bytes)
        : "memory");
  }
  // Waits until the phase of this parity has ended; the data that arrived in it are then visible.
  // Uses block scope, because the data are in this block's memory; cluster scope would invalidate
  // the L1 cache.
  __device__ void Wait(uint32_t parity) const {
    CROUT_CLUSTER_ASM(
        "{.reg .pred ended;\n"
        "again:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 ended, [%0], %1;\n"
        "@!ended bra again;}" ::"r"(address_),
        "r"(parity)
        : "memory");
  }

 private:
  uint32_t address_;
};

// Called by every thread of the cluster. Orders only the initialization of barriers.
__device__ inline void SyncCluster() {
  CROUT_CLUSTER_ASM("barrier.cluster.arrive.relaxed.aligned;" ::: "memory");
  CROUT_CLUSTER_ASM("barrier.cluster.wait.aligned;" ::: "memory");
}

// Copies 16 bytes from this block's memory to `to` in the cluster, and counts them at the barrier
// `at` of the receiving block.
__device__ inline void CopyToCluster(uint32_t from, uint32_t to, uint32_t at) {
  [[maybe_unused]] uint64_t x;  // unused on GPUs without clusters
  [[maybe_unused]] uint64_t y;
  asm volatile("ld.shared.v2.b64 {%0, %1}, [%2];" : "=l"(x), "=l"(y) : "r"(from));
  CROUT_CLUSTER_ASM(
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [%0], {%1, %2}, [%3];" ::"r"(
          to),
      "l"(x), "l"(y), "r"(at)
      : "memory");
}

#undef CROUT_CLUSTER_ASM

}  // namespace crout::cuda

#endif  // CROUT_KERNELS_CUDA_DEVICE_SHARED_MEMORY_CUH_
