// SPDX-License-Identifier: Apache-2.0

#include "tests/support/timing/gate.h"

namespace crout::testing {

void Gate::Close() {
  MutexLock lock(&mutex_);
  closed_ = true;
}

void Gate::Open() {
  MutexLock lock(&mutex_);
  closed_ = false;
  changed_.SignalAll();
}

void Gate::Pass() {
  MutexLock lock(&mutex_);
  ++arrivals_;
  ++held_;
  changed_.SignalAll();
  while (closed_) changed_.Wait(&mutex_);
  --held_;
}

void Gate::WaitUntilHeld(int count) {
  MutexLock lock(&mutex_);
  while (held_ < count) changed_.Wait(&mutex_);
}

int Gate::held() const {
  MutexLock lock(&mutex_);
  return held_;
}

int Gate::arrivals() const {
  MutexLock lock(&mutex_);
  return arrivals_;
}

}  // namespace crout::testing
