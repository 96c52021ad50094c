// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/device/core_budget.h"

#include <algorithm>

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

}  // namespace crout::host
