// SPDX-License-Identifier: Apache-2.0

// A grid of CUDA threads on the host.
//
// Each CUDA thread is a fiber. One host thread runs all fibers, each of them until it waits or
// ends. The order of the fibers varies, so that a missing barrier changes results. Under
// ThreadSanitizer, each CUDA thread is a host thread, so that ThreadSanitizer detects races of
// device code.
//
// Except for RunEmulatedGrid and RunEmulatedBlocks, only emulated threads call these functions.
// Only one grid runs at a time.
#ifndef CROUT_TESTS_EMULATION_EMULATED_GRID_H_
#define CROUT_TESTS_EMULATION_EMULATED_GRID_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/functional/function_ref.h"
#include "kernels/util/sanitizers.h"
#ifdef CROUT_THREAD_SANITIZED
#include <barrier>
#endif

namespace crout {

// Runs other threads of the grid until `ready` returns true. Aborts if every thread waits; under
// ThreadSanitizer, waits forever.
void WaitUntil(absl::FunctionRef<bool()> ready);

#ifdef CROUT_THREAD_SANITIZED
using EmulatedBarrier = std::barrier<>;
#else
// Replaces std::barrier for fibers, with the functions that are used here.
class EmulatedBarrier {
 public:
  explicit EmulatedBarrier(ptrdiff_t threads) : threads_(threads) {}

  void arrive_and_wait();
  void arrive_and_drop();

 private:
  void EndPhaseIfComplete();

  ptrdiff_t threads_;
  ptrdiff_t arrived_ = 0;
  uint64_t phase_ = 0;
};
#endif

// A block of threads with its shared memory.
class EmulatedBlock {
 public:
  static constexpr int kWarp = 32;
  static constexpr size_t kMemory = 1 << 16;  // bytes of shared memory

  // `threads` must be a multiple of the warp size.
  explicit EmulatedBlock(unsigned threads);

  void Sync() { all_.arrive_and_wait(); }
  void SyncWarp();
  // Synchronizes the block and returns whether `predicate` is true for at least one thread.
  bool SyncOr(bool predicate);
  unsigned threads() const { return static_cast<unsigned>(slots_.size()); }
  // Removes the calling thread from later synchronizations, because its kernel has returned.
  void Leave();
  std::byte* memory() { return memory_.data(); }

  // Synchronizes the warp and combines the values of its lanes in order: for each lane,
  // result = f(result, value of the lane, lane). The initial result is `start`.
  template <class V, class F>
  V OverWarp(V value, V start, F f) {
    static_assert(sizeof(V) <= sizeof(uint64_t));
    const unsigned first = OwnSlot() / kWarp * kWarp;
    std::memcpy(&slots_[OwnSlot()], &value, sizeof(V));
    SyncWarp();
    V result = start;
    for (int lane = 0; lane < kWarp; ++lane) {
      V other;
      std::memcpy(&other, &slots_[first + lane], sizeof(V));
      result = f(result, other, lane);
    }
    SyncWarp();  // before the slots are reused
    return result;
  }

 private:
  static unsigned OwnSlot();

  EmulatedBarrier all_;
  std::vector<std::unique_ptr<EmulatedBarrier>> warps_;
  std::vector<uint64_t> slots_;  // one per thread
  alignas(256) std::array<std::byte, kMemory> memory_;
};

// The blocks of one cluster, which access each other's shared memory.
class EmulatedGrid {
 public:
  EmulatedGrid(unsigned blocks, unsigned threads);

  EmulatedBlock& block(unsigned rank) { return *blocks_[rank]; }
  unsigned blocks() const { return static_cast<unsigned>(blocks_.size()); }
  void Sync() { all_.arrive_and_wait(); }

  // Associates an object with an address in the blocks' shared memory (shared_memory.cuh), without
  // storing it there. Attached() throws std::out_of_range if there is none.
  void Attach(uint32_t address, std::shared_ptr<void> object);
  std::shared_ptr<void> Attached(uint32_t address);

 private:
  std::vector<std::unique_ptr<EmulatedBlock>> blocks_;
  EmulatedBarrier all_;
  std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<void>> attached_;
};

// The number of blocks in each dimension of a grid, or the index of one block.
struct EmulatedBlocks {
  unsigned x = 1, y = 1, z = 1;
};

// The indices of the calling thread.
class EmulatedThread {
 public:
  static unsigned Index();
  static unsigned Threads();  // number of threads in the block
  static const EmulatedBlocks& BlockIndex();
  static const EmulatedBlocks& Blocks();  // number of blocks in the grid
  static EmulatedBlock& Block();
  static EmulatedGrid& Grid();
};

// Runs `body` in every thread of a grid of `blocks` blocks with `threads` threads each, and waits.
// The blocks can synchronize.
void RunEmulatedGrid(unsigned blocks, unsigned threads, const std::function<void()>& body);

// Runs `body` in every thread of a grid, one block after the other, and waits. The blocks must not
// synchronize.
void RunEmulatedBlocks(const EmulatedBlocks& blocks, unsigned threads,
                       const std::function<void()>& body);

}  // namespace crout

#endif  // CROUT_TESTS_EMULATION_EMULATED_GRID_H_
