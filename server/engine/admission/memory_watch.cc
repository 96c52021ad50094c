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
    : device_(device), last_(Ask(device)), thread_(StartThread([this] { Work(); })) {}

MemoryWatch::~MemoryWatch() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
  }
  wake_.SignalAll();
  thread_.join();
}

MemoryWatch::Answer MemoryWatch::last() const {
  MutexLock lock(&mutex_);
  return last_;
}

MemoryWatch::Answer MemoryWatch::Ask(const Device& device) {
  const auto asked = SteadyNow();
  return {device.memory_stats(), asked};
}

void MemoryWatch::Work() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    wake_.WaitUntil(&mutex_, SteadyNow() + kPeriod);
    if (stopping_) return;
    Answer answer = last_;
    mutex_.Unlock();
    AbandonOnBadAlloc([&] { answer = Ask(device_); });
    mutex_.Lock();
    last_ = answer;
  }
}

}  // namespace crout
