// SPDX-License-Identifier: Apache-2.0

#include "tests/emulation/emulated_grid.h"

#include <algorithm>
#include <utility>

#ifdef CROUT_THREAD_SANITIZED
#include <thread>
#else
#include <ucontext.h>

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <random>
#endif
#ifdef CROUT_ADDRESS_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace crout {
namespace {

struct Self {
  EmulatedGrid* grid = nullptr;
  unsigned block = 0;  // rank in the grid
  unsigned thread = 0;
  EmulatedBlocks index;
  EmulatedBlocks blocks;
};

#ifdef CROUT_THREAD_SANITIZED

thread_local Self own;
Self& self() { return own; }

void RunThreads(const std::vector<Self>& selves, const std::function<void()>& body) {
  std::vector<std::thread> running;
  for (const Self& thread : selves) {
    running.emplace_back([&thread, &body] {
      own = thread;
      body();
      EmulatedThread::Block().Leave();
    });
  }
  for (std::thread& thread : running) thread.join();
}

#else

constexpr size_t kStackBytes = size_t{256} << 10;

struct Fiber {
  Self self;
  ucontext_t context;
  std::unique_ptr<std::byte[]> stack;
  // The condition of a waiting fiber.
  std::optional<absl::FunctionRef<bool()>> ready;
  bool ended = false;
};

// The fibers of the running grid, and the context of the scheduler, which switches between them.
struct Grid {
  std::vector<Fiber> fibers;
  Fiber* running = nullptr;
  ucontext_t scheduler;
  const std::function<void()>* body = nullptr;
#ifdef CROUT_ADDRESS_SANITIZED
  void* fake_stack = nullptr;  // the scheduler's stack
  const void* stack = nullptr;
  size_t stack_bytes = 0;
#endif
};
Grid* current = nullptr;

Self& self() { return current->running->self; }

// Switches to the scheduler. If `last`, the fiber has ended and never continues.
void SwitchToScheduler([[maybe_unused]] bool last) {
#ifdef CROUT_ADDRESS_SANITIZED
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(last ? nullptr : &fake_stack, current->stack,
                                 current->stack_bytes);
#endif
  swapcontext(&current->running->context, &current->scheduler);
#ifdef CROUT_ADDRESS_SANITIZED
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void RunFiber() {
#ifdef CROUT_ADDRESS_SANITIZED
  __sanitizer_finish_switch_fiber(nullptr, &current->stack, &current->stack_bytes);
#endif
  (*current->body)();
  EmulatedThread::Block().Leave();
  current->running->ended = true;
  SwitchToScheduler(/*last=*/true);
}

void SwitchTo(Fiber& fiber) {
  fiber.ready.reset();
  current->running = &fiber;
#ifdef CROUT_ADDRESS_SANITIZED
  __sanitizer_start_switch_fiber(&current->fake_stack, fiber.stack.get(), kStackBytes);
#endif
  swapcontext(&current->scheduler, &fiber.context);
#ifdef CROUT_ADDRESS_SANITIZED
  __sanitizer_finish_switch_fiber(current->fake_stack, nullptr, nullptr);
#endif
}

void RunThreads(const std::vector<Self>& selves, const std::function<void()>& body) {
  // Grids reuse the stacks of earlier grids. The first use of new memory would take most of the
  // time.
  static std::vector<std::unique_ptr<std::byte[]>> stacks;
  Grid grid;
  grid.body = &body;
  grid.fibers.resize(selves.size());
  for (size_t k = 0; k < selves.size(); ++k) {
    Fiber& fiber = grid.fibers[k];
    fiber.self = selves[k];
    if (stacks.empty()) {
      fiber.stack.reset(new std::byte[kStackBytes]);  // not initialized
    } else {
      fiber.stack = std::move(stacks.back());
      stacks.pop_back();
#ifdef CROUT_ADDRESS_SANITIZED
      __asan_unpoison_memory_region(fiber.stack.get(), kStackBytes);  // frames of an ended fiber
#endif
    }
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, RunFiber, 0);
  }
  current = &grid;
  const size_t count = grid.fibers.size();
  static std::minstd_rand random;  // every run of the program has the same orders
  for (size_t left = count; left > 0;) {
    bool progress = false;
    const size_t first = random() % count;
    const size_t step = random() % 2 == 0 ? 1 : count - 1;
    for (size_t k = 0; k < count; ++k) {
      Fiber& fiber = grid.fibers[(first + k * step) % count];
      if (fiber.ended || (fiber.ready && !(*fiber.ready)())) continue;
      SwitchTo(fiber);
      progress = true;
      if (fiber.ended) --left;
    }
    if (!progress) {
      std::fputs("every thread of the emulated grid waits\n", stderr);
      std::abort();
    }
  }
  current = nullptr;
  for (Fiber& fiber : grid.fibers) stacks.push_back(std::move(fiber.stack));
}

#endif

}  // namespace

#ifdef CROUT_THREAD_SANITIZED

void WaitUntil(absl::FunctionRef<bool()> ready) {
  while (!ready()) std::this_thread::yield();
}

#else

void WaitUntil(absl::FunctionRef<bool()> ready) {
  if (ready()) return;
  current->running->ready.emplace(ready);
  SwitchToScheduler(/*last=*/false);
}

void EmulatedBarrier::arrive_and_wait() {
  const uint64_t phase = phase_;
  ++arrived_;
  EndPhaseIfComplete();
  WaitUntil([&] { return phase_ != phase; });
}

void EmulatedBarrier::arrive_and_drop() {
  --threads_;
  EndPhaseIfComplete();
}

void EmulatedBarrier::EndPhaseIfComplete() {
  if (arrived_ < threads_) return;
  arrived_ = 0;
  ++phase_;
}

#endif

EmulatedBlock::EmulatedBlock(unsigned threads) : all_(threads), slots_(threads) {
  for (unsigned warp = 0; warp < threads / kWarp; ++warp) {
    warps_.push_back(std::make_unique<EmulatedBarrier>(kWarp));
  }
}

void EmulatedBlock::SyncWarp() { warps_[self().thread / kWarp]->arrive_and_wait(); }

bool EmulatedBlock::SyncOr(bool predicate) {
  slots_[OwnSlot()] = predicate ? 1 : 0;
  Sync();
  const bool any =
      std::any_of(slots_.begin(), slots_.end(), [](uint64_t slot) { return slot != 0; });
  Sync();  // before the slots are reused
  return any;
}

void EmulatedBlock::Leave() {
  warps_[self().thread / kWarp]->arrive_and_drop();
  all_.arrive_and_drop();
}

unsigned EmulatedBlock::OwnSlot() { return self().thread; }

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

unsigned EmulatedThread::Index() { return self().thread; }
unsigned EmulatedThread::Threads() { return Block().threads(); }
const EmulatedBlocks& EmulatedThread::BlockIndex() { return self().index; }
const EmulatedBlocks& EmulatedThread::Blocks() { return self().blocks; }
EmulatedBlock& EmulatedThread::Block() { return self().grid->block(self().block); }
EmulatedGrid& EmulatedThread::Grid() { return *self().grid; }

void RunEmulatedGrid(unsigned blocks, unsigned threads, const std::function<void()>& body) {
  EmulatedGrid grid(blocks, threads);
  std::vector<Self> selves;
  for (unsigned block = 0; block < blocks; ++block) {
    for (unsigned thread = 0; thread < threads; ++thread) {
      selves.push_back({&grid, block, thread, {block, 0, 0}, {blocks, 1, 1}});
    }
  }
  RunThreads(selves, body);
}

void RunEmulatedBlocks(const EmulatedBlocks& blocks, unsigned threads,
                       const std::function<void()>& body) {
  for (unsigned i = 0; i < blocks.x * blocks.y * blocks.z; ++i) {
    const EmulatedBlocks index = {i % blocks.x, i / blocks.x % blocks.y, i / blocks.x / blocks.y};
    RunEmulatedGrid(1, threads, [&] {
      self().index = index;
      self().blocks = blocks;
      body();
    });
  }
}

}  // namespace crout
