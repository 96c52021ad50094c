// SPDX-License-Identifier: Apache-2.0

#include "tests/support/memory/counting_resource.h"

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "kernels/util/size_class.h"

namespace crout::testing {
namespace {

constexpr size_t kAlignment = 256;

}  // namespace

size_t CountingResource::live_bytes() const {
  MutexLock lock(&mutex_);
  return live_bytes_;
}

int CountingResource::live_buffers() const {
  MutexLock lock(&mutex_);
  return live_buffers_;
}

size_t CountingResource::peak_bytes() const {
  MutexLock lock(&mutex_);
  return peak_bytes_;
}

void CountingResource::ResetPeak() {
  MutexLock lock(&mutex_);
  peak_bytes_ = live_bytes_;
}

void CountingResource::FailAllocations(int count, int after) {
  MutexLock lock(&mutex_);
  faults_ = count;
  before_faults_ = after;
}

void CountingResource::BeginUse(const void* data) {
  MutexLock lock(&mutex_);
  in_use_.insert(data);
}

void CountingResource::EndUse(const void* data) {
  MutexLock lock(&mutex_);
  in_use_.erase(data);
}

int CountingResource::freed_in_use() const {
  MutexLock lock(&mutex_);
  return freed_in_use_;
}

bool CountingResource::TakesFault() {
  if (faults_ == 0) return false;
  if (before_faults_ > 0) {
    --before_faults_;
    return false;
  }
  --faults_;
  return true;
}

absl::StatusOr<void*> CountingResource::DoAllocate(size_t bytes) {
  gate_.Pass();
  MutexLock lock(&mutex_);
  if (TakesFault() || BlockBytes(bytes) > capacity_ - live_bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat("no memory for ", bytes, " bytes"));
  }
  void* block = nullptr;
  if (posix_memalign(&block, kAlignment, bytes) != 0) {
    return absl::ResourceExhaustedError("the heap is exhausted");
  }
  live_bytes_ += BlockBytes(bytes);
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  ++live_buffers_;
  return block;
}

void CountingResource::DoDeallocate(void* data, size_t bytes) {
  gate_.Pass();
  MutexLock lock(&mutex_);
  if (in_use_.erase(data) > 0) ++freed_in_use_;
  std::free(data);
  live_bytes_ -= BlockBytes(bytes);
  --live_buffers_;
}

}  // namespace crout::testing
