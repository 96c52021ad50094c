// SPDX-License-Identifier: Apache-2.0

// A grid of CUDA threads on the host.
//
// Each CUDA thread is a fiber, and one host thread runs all fibers: each until it waits for others
// or ends. The fibers run in varying orders, so that a missing barrier changes results. Under
// ThreadSanitizer, which then finds races of device code, each CUDA thread is a host thread.
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

// Lets other threads of the grid run until `ready` returns true. Aborts if every thread waits.
void WaitUntil(absl::FunctionRef<bool()> ready);

#ifdef CROUT_THREAD_SANITIZED
using EmulatedBarrier = std::barrier<>;
#else
// The part of std::barrier that is used here, for fibers.
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

// Threads that share memory and synchronize. Only these threads call the methods.
class EmulatedBlock {
 public:
  static constexpr int kWarp = 32;
  static constexpr size_t kMemory = 1 << 16;

  // `threads` must be a multiple of the warp size.
  explicit EmulatedBlock(unsigned threads);

  void Sync() { all_.arrive_and_wait(); }
  void SyncWarp();
  // Synchronizes the block and returns whether `predicate` is true for any thread.
  bool SyncOr(bool predicate);
  unsigned threads() const { return static_cast<unsigned>(slots_.size()); }
  // Removes a returning thread from later synchronizations.
  void Leave();
  std::byte* memory() { return memory_.data(); }

  // Folds over the lanes of the warp in order: result = f(result, value of the lane, lane),
  // starting with `start`.
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

// Blocks that access each other's memory: one cluster.
class EmulatedGrid {
 public:
  EmulatedGrid(unsigned blocks, unsigned threads);

  EmulatedBlock& block(unsigned rank) { return *blocks_[rank]; }
  unsigned blocks() const { return static_cast<unsigned>(blocks_.size()); }
  void Sync() { all_.arrive_and_wait(); }

  // Associates an object with an address in the blocks' memory. The object is stored outside this
  // memory.
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
  static unsigned Threads();  // of the block
  static const EmulatedBlocks& BlockIndex();
  static const EmulatedBlocks& Blocks();  // of the grid
  static EmulatedBlock& Block();
  static EmulatedGrid& Grid();
};

// Runs `body` in every thread of the grid.
void RunEmulatedGrid(unsigned blocks, unsigned threads, const std::function<void()>& body);

// Runs `body` in every thread, one block after the other. For grids whose blocks do not
// synchronize.
void RunEmulatedBlocks(const EmulatedBlocks& blocks, unsigned threads,
                       const std::function<void()>& body);

}  // namespace crout

#endif  // CROUT_TESTS_EMULATION_EMULATED_GRID_H_
