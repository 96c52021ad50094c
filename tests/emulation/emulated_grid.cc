// SPDX-License-Identifier: Apache-2.0

#include "tests/emulation/emulated_grid.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace crout {
namespace {

struct Self {
  EmulatedGrid* grid = nullptr;
  unsigned block = 0;  // rank in the grid
  unsigned thread = 0;
  EmulatedBlocks index;
  EmulatedBlocks blocks;
};
thread_local Self self;

}  // namespace

EmulatedBlock::EmulatedBlock(unsigned threads) : all_(threads), slots_(threads) {
  for (unsigned warp = 0; warp < threads / kWarp; ++warp) {
    warps_.push_back(std::make_unique<std::barrier<>>(kWarp));
  }
}

void EmulatedBlock::SyncWarp() { warps_[self.thread / kWarp]->arrive_and_wait(); }

bool EmulatedBlock::SyncOr(bool predicate) {
  slots_[OwnSlot()] = predicate ? 1 : 0;
  Sync();
  const bool any =
      std::any_of(slots_.begin(), slots_.end(), [](uint64_t slot) { return slot != 0; });
  Sync();  // before the slots are reused
  return any;
}

void EmulatedBlock::Leave() {
  warps_[self.thread / kWarp]->arrive_and_drop();
  all_.arrive_and_drop();
}

unsigned EmulatedBlock::OwnSlot() { return self.thread; }

EmulatedGrid::EmulatedGrid(unsigned blocks, unsigned threads) : all_(blocks * threads) {
  for (unsigned rank = 0; rank < blocks; ++rank) {
    blocks_.push_back(std::make_unique<EmulatedBlock>(threads));
  }
}

void EmulatedGrid::Attach(uint32_t address, std::shared_ptr<void> object) {
  const std::lock_guard lock(mutex_);
  attached_[address] = std::move(object);
}

std::shared_ptr<void> EmulatedGrid::Attached(uint32_t address) {
  const std::lock_guard lock(mutex_);
  return attached_.at(address);
}

unsigned EmulatedThread::Index() { return self.thread; }
unsigned EmulatedThread::Threads() { return Block().threads(); }
const EmulatedBlocks& EmulatedThread::BlockIndex() { return self.index; }
const EmulatedBlocks& EmulatedThread::Blocks() { return self.blocks; }
EmulatedBlock& EmulatedThread::Block() { return self.grid->block(self.block); }
EmulatedGrid& EmulatedThread::Grid() { return *self.grid; }

void RunEmulatedGrid(unsigned blocks, unsigned threads, const std::function<void()>& body) {
  EmulatedGrid grid(blocks, threads);
  std::vector<std::thread> running;
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned thread = 0; thread < threads; ++thread) {
      running.emplace_back([&grid, &body, blocks, block, thread] {
        self = {&grid, block, thread, {block, 0, 0}, {blocks, 1, 1}};
        body();
        EmulatedThread::Block().Leave();
      });
    }
  }
  for (std::thread& thread : running) thread.join();
}

void RunEmulatedBlocks(const EmulatedBlocks& blocks, unsigned threads,
                       const std::function<void()>& body) {
  for (unsigned i = 0; i < blocks.x * blocks.y * blocks.z; ++i) {
    const EmulatedBlocks index = {i % blocks.x, i / blocks.x % blocks.y, i / blocks.x / blocks.y};
    RunEmulatedGrid(1, threads, [&] {
      self.index = index;
      self.blocks = blocks;
      body();
    });
  }
}

}  // namespace crout
