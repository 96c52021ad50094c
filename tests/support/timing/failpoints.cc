// SPDX-License-Identifier: Apache-2.0

#include "tests/support/timing/failpoints.h"

#include <cstdio>
#include <cstdlib>
#include <utility>

#include "kernels/util/clock.h"

namespace crout::testing {

Failpoints::Failpoints() {
  if (failpoint_handler.exchange(this) != nullptr) {
    std::fputs("a second Failpoints at a time\n", stderr);
    std::abort();
  }
}

Failpoints::~Failpoints() {
  failpoint_handler.store(nullptr);
  MutexLock lock(&mutex_);
  ending_ = true;
  changed_.SignalAll();
  while (inside_ > 0) changed_.Wait(&mutex_);
}

Failpoints::Point& Failpoints::At(std::string_view name) {
  const auto found = points_.find(name);
  return found != points_.end() ? found->second : points_[std::string(name)];
}

void Failpoints::Hold(std::string_view name) {
  MutexLock lock(&mutex_);
  At(name).held = true;
}

void Failpoints::Release(std::string_view name) {
  MutexLock lock(&mutex_);
  At(name).held = false;
  changed_.SignalAll();
}

void Failpoints::Fail(std::string_view name, absl::Status status, int times) {
  MutexLock lock(&mutex_);
  At(name).failures = times;
  At(name).status = std::move(status);
}

void Failpoints::Do(std::string_view name, std::function<void()> work) {
  MutexLock lock(&mutex_);
  At(name).work = std::move(work);
}

void Failpoints::FlipBit(std::string_view name, size_t bit) {
  MutexLock lock(&mutex_);
  At(name).bit = bit;
}

void Failpoints::AwaitReached(std::string_view name, int count) {
  MutexLock lock(&mutex_);
  while (At(name).reached < count) changed_.Wait(&mutex_);
}

int Failpoints::reached(std::string_view name) const {
  MutexLock lock(&mutex_);
  const auto found = points_.find(name);
  return found == points_.end() ? 0 : found->second.reached;
}

void Failpoints::Advance(absl::Duration duration) {
  const auto step = absl::ToChronoNanoseconds(duration);
  auto offset = clock_offset.load();
  while (!clock_offset.compare_exchange_weak(offset, offset + step)) {
  }
}

absl::Status Failpoints::Reach(std::string_view name, std::span<std::byte> bytes) {
  MutexLock lock(&mutex_);
  Point& point = At(name);  // remains valid: points are never erased
  ++point.reached;
  ++inside_;
  changed_.SignalAll();
  while (point.held && !ending_) changed_.Wait(&mutex_);
  if (point.bit.has_value() && *point.bit < 8 * bytes.size()) {
    bytes[*point.bit / 8] ^= std::byte{1} << (*point.bit % 8);
    point.bit.reset();
  }
  if (const std::function<void()> work = std::exchange(point.work, nullptr)) {
    mutex_.Unlock();  // `work` may block or call this object.
    work();
    mutex_.Lock();
  }
  if (--inside_ == 0) changed_.SignalAll();
  if (point.failures == 0) return absl::OkStatus();
  if (point.failures != kAlways) --point.failures;
  return point.status;
}

}  // namespace crout::testing
