// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/executor.h"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <latch>
#include <new>
#include <thread>
#include <utility>

#include "kernels/host/device/parallel_for.h"
#include "kernels/util/thread.h"
#include "kernels/util/thread_pool.h"

namespace crout::host {

CoreBudget::Lease CoreBudget::Acquire(int cores) {
  MutexLock lock(&mutex_);
  const uint64_t ticket = next_ticket_++;
  while (serving_ != ticket || free_ < cores) changed_.Wait(&mutex_);
  ++serving_;
  free_ -= cores;
  peak_ = std::max(peak_, total_ - free_);
  // The next waiting request may fit too.
  if (serving_ != next_ticket_) changed_.SignalAll();
  return Lease(this, cores);
}

void CoreBudget::Release(int cores) {
  MutexLock lock(&mutex_);
  free_ += cores;
  if (serving_ != next_ticket_) changed_.SignalAll();
}

int CoreBudget::peak() const {
  MutexLock lock(&mutex_);
  return peak_;
}

int CoreBudget::waiting() const {
  MutexLock lock(&mutex_);
  return static_cast<int>(next_ticket_ - serving_);
}

Executor::Executor(int cores) : budget_(cores) {
  if (cores == 1) return;
  // Throws std::system_error if the system cannot start that many threads. Without this check,
  // libgomp would end the process.
  { const ThreadPool as_many(budget_.total()); }
  std::latch started(1);
  team_ = StartThread([this, &started] {
    // Creates the team's threads before the device serves. libgomp keeps them. If it failed to
    // create a thread later, it would end the process.
    omp_set_num_threads(budget_.total());
    ParallelFor(budget_.total(), budget_.total(), [](int64_t) {});
    started.count_down();
    TeamLoop();
  });
  started.wait();
}

Executor::~Executor() {
  if (!team_.joinable()) return;
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    changed_.SignalAll();
  }
  team_.join();
}

void Executor::Run(Width width, Work work) {
  const bool all_cores = width == Width::kAllCores && budget_.total() > 1;
  const CoreBudget::Lease lease = budget_.Acquire(all_cores ? budget_.total() : 1);
  if (all_cores) {
    RunOnTeam(work);
  } else {
    omp_set_num_threads(1);  // Sets this thread's count only; OpenBLAS reads it at each call.
    work(1);
  }
}

void Executor::RunOnTeam(Work work) {
  // The caller's lease covers all cores, so no other thread is here.
  MutexLock lock(&mutex_);
  work_ = &work;
  changed_.SignalAll();
  while (work_ != nullptr) changed_.Wait(&mutex_);
  if (std::exchange(no_memory_, false)) throw std::bad_alloc();
}

void Executor::TeamLoop() {
  MutexLock lock(&mutex_);
  while (true) {
    while (work_ == nullptr && !stopping_) changed_.Wait(&mutex_);
    if (stopping_) return;
    const Work work = *work_;
    mutex_.Unlock();
    bool no_memory = false;
    try {
      work(budget_.total());
    } catch (const std::bad_alloc&) {
      no_memory = true;  // RunOnTeam() throws it again on the calling thread.
    }
    mutex_.Lock();
    no_memory_ = no_memory;
    work_ = nullptr;
    changed_.SignalAll();
  }
}

}  // namespace crout::host
