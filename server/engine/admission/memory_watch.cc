// SPDX-License-Identifier: Apache-2.0

#include "server/engine/admission/memory_watch.h"

#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/thread.h"

namespace crout {
namespace {

constexpr std::chrono::seconds kPeriod(1);

}  // namespace

MemoryWatch::MemoryWatch(const Device& device)
    : device_(device), last_(Read(device)), thread_(StartThread([this] { Work(); })) {}

MemoryWatch::~MemoryWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  thread_.join();
}

MemoryWatch::Reading MemoryWatch::last() const {
  MutexLock lock(&mutex_);
  return last_;
}

MemoryWatch::Reading MemoryWatch::Read(const Device& device) {
  const auto start = SteadyNow();
  return {device.memory_stats(), start};
}

void MemoryWatch::Work() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    wake_.WaitUntil(&mutex_, SteadyNow() + kPeriod);
    if (stopping_) return;
    Reading reading = last_;
    mutex_.Unlock();
    AbandonOnBadAlloc([&] { reading = Read(device_); });
    mutex_.Lock();
    last_ = reading;
  }
}

}  // namespace crout
