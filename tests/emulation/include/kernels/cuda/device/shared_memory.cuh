// SPDX-License-Identifier: Apache-2.0

// Emulates the functions for the device's shared memory on the host. An address is block rank *
// 2^24
// + byte offset. Barriers count bytes like those of the device.
#ifndef CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_SHARED_MEMORY_CUH_
#define CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_SHARED_MEMORY_CUH_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>

#include "tests/emulation/emulated_grid.h"

namespace crout::cuda {

template <class S>
S& SharedByBlock() {
  static_assert(sizeof(S) <= EmulatedBlock::kMemory);
  return *reinterpret_cast<S*>(EmulatedThread::Block().memory());
}

inline constexpr int kRankShift = 24;

inline uint32_t SharedAddress(const void* p) {
  const auto offset =
      static_cast<uint32_t>(static_cast<const std::byte*>(p) - EmulatedThread::Block().memory());
  return EmulatedThread::BlockIndex().x << kRankShift | offset;
}

// Returns the host's pointer. Aborts if the address is misaligned, which the device would reject.
inline std::byte* At(uint32_t address, uint32_t alignment) {
  if (address % alignment != 0) std::abort();
  const uint32_t offset = address & ((1U << kRankShift) - 1);
  return EmulatedThread::Grid().block(address >> kRankShift).memory() + offset;
}

template <class T>
struct SharedChunk {
  static constexpr int kCount = 16 / sizeof(T);
  static void Load(uint32_t from, T* x) { std::memcpy(x, At(from, 16), 16); }
  static void Store(uint32_t to, const T* x) { std::memcpy(At(to, 16), x, 16); }
};

inline uint64_t LoadShared64(uint32_t from) {
  uint64_t x;
  std::memcpy(&x, At(from, 8), 8);
  return x;
}
inline void StoreShared64(uint32_t to, uint64_t x) { std::memcpy(At(to, 8), &x, 8); }

inline uint32_t ClusterAddress(uint32_t own, uint32_t rank) {
  return rank << kRankShift | (own & ((1U << kRankShift) - 1));
}
inline void SyncCluster() { EmulatedThread::Grid().Sync(); }

// A phase ends after one arrival and the number of bytes that it announces. The bytes may arrive
// before the announcement.
class TransactionBarrier {
 public:
  explicit TransactionBarrier(uint32_t address) : address_(address) {}

  void Start() const { EmulatedThread::Grid().Attach(address_, std::make_shared<State>()); }
  static void FenceInit() {}
  void ExpectBytes(uint32_t bytes) const {
    Change([&](State& state) {
      state.bytes += bytes;
      --state.arrivals;
    });
  }
  void Count(uint32_t bytes) const {
    Change([&](State& state) { state.bytes -= bytes; });
  }
  void Wait(uint32_t parity) const {
    State& state = Get();
    WaitUntil([&] {
      const std::lock_guard lock(state.mutex);
      return (state.phase & 1) != parity;
    });
  }

 private:
  struct State {
    std::mutex mutex;
    int arrivals = 1;
    int64_t bytes = 0;  // announced but not received
    unsigned phase = 0;
  };

  State& Get() const {
    return *static_cast<State*>(EmulatedThread::Grid().Attached(address_).get());
  }
  template <class F>
  void Change(F&& f) const {
    State& state = Get();
    const std::lock_guard lock(state.mutex);
    f(state);
    if (state.arrivals != 0 || state.bytes != 0) return;
    state.arrivals = 1;
    ++state.phase;
  }

  uint32_t address_;
};

inline void CopyToCluster(uint32_t from, uint32_t to, uint32_t at) {
  std::memcpy(At(to, 16), At(from, 16), 16);
  TransactionBarrier(at).Count(16);
}

}  // namespace crout::cuda

#endif  // CROUT_TESTS_EMULATION_INCLUDE_KERNELS_CUDA_DEVICE_SHARED_MEMORY_CUH_
