// A grid of CUDA threads, each a thread of the host.
#ifndef CROUT_TESTS_EMULATION_EMULATED_GRID_H_
#define CROUT_TESTS_EMULATION_EMULATED_GRID_H_

#include <array>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace crout {

// Threads that share memory and meet. All of its methods are called by its own threads.
class EmulatedBlock {
 public:
  static constexpr int kWarp = 32;
  static constexpr size_t kMemory = 1 << 16;

  // `threads`: whole warps.
  explicit EmulatedBlock(unsigned threads);

  void Meet() { all_.arrive_and_wait(); }
  void MeetWarp();
  // The same, and whether any of the threads says so.
  bool MeetAndAsk(bool says);
  unsigned threads() const { return static_cast<unsigned>(slots_.size()); }
  // A thread that returns is not waited for.
  void Leave();
  std::byte* memory() { return memory_.data(); }

  // Over the warp's lanes in turn: result = f(result, the lane's value, lane), from `start` on.
  template <class V, class F>
  V OverWarp(V value, V start, F f) {
    static_assert(sizeof(V) <= sizeof(uint64_t));
    const unsigned first = OwnSlot() / kWarp * kWarp;
    std::memcpy(&slots_[OwnSlot()], &value, sizeof(V));
    MeetWarp();
    V result = start;
    for (int lane = 0; lane < kWarp; ++lane) {
      V other;
      std::memcpy(&other, &slots_[first + lane], sizeof(V));
      result = f(result, other, lane);
    }
    MeetWarp();  // before the slots are used again
    return result;
  }

 private:
  static unsigned OwnSlot();

  std::barrier<> all_;
  std::vector<std::unique_ptr<std::barrier<>>> warps_;
  std::vector<uint64_t> slots_;  // one for each thread
  alignas(256) std::array<std::byte, kMemory> memory_;
};

// Blocks that reach each other's memory: one cluster.
class EmulatedGrid {
 public:
  EmulatedGrid(unsigned blocks, unsigned threads);

  EmulatedBlock& block(unsigned rank) { return *blocks_[rank]; }
  unsigned blocks() const { return static_cast<unsigned>(blocks_.size()); }
  void Meet() { all_.arrive_and_wait(); }

  // What stands at an address of the blocks' memory and has no bytes there.
  void Attach(uint32_t address, std::shared_ptr<void> object);
  std::shared_ptr<void> Attached(uint32_t address);

 private:
  std::vector<std::unique_ptr<EmulatedBlock>> blocks_;
  std::barrier<> all_;
  std::mutex mutex_;
  std::map<uint32_t, std::shared_ptr<void>> attached_;
};

// A grid's blocks along each of its dimensions, or which of them one is.
struct EmulatedBlocks {
  unsigned x = 1, y = 1, z = 1;
};

// Which thread of which block the calling thread is.
class EmulatedThread {
 public:
  static unsigned Index();
  static unsigned Threads();  // of its block
  static const EmulatedBlocks& BlockIndex();
  static const EmulatedBlocks& Blocks();  // of its grid
  static EmulatedBlock& Block();
  static EmulatedGrid& Grid();
};

// Runs `body` once in every thread of the grid, all at once.
void RunEmulatedGrid(unsigned blocks, unsigned threads, const std::function<void()>& body);

// Likewise, a block after the other, of a grid whose blocks do not meet.
void RunEmulatedBlocks(const EmulatedBlocks& blocks, unsigned threads,
                       const std::function<void()>& body);

}  // namespace crout

#endif  // CROUT_TESTS_EMULATION_EMULATED_GRID_H_
