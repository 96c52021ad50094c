// SPDX-License-Identifier: Apache-2.0

// Owners of memory, on the host or on a device.
#ifndef CROUT_KERNELS_MEMORY_H_
#define CROUT_KERNELS_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "absl/status/statusor.h"

namespace crout {

class Buffer;

// Allocates and frees memory. Thread-safe; outlives every Buffer allocated from it.
class MemoryResource {
 public:
  virtual ~MemoryResource() = default;

  // Allocates at least `bytes` bytes, aligned to 256. Zero bytes give an empty Buffer.
  // RESOURCE_EXHAUSTED with the requested bytes in the message if memory is short.
  absl::StatusOr<Buffer> Allocate(size_t bytes);

  // Returns true if Allocate(bytes) would be served from cached memory. Otherwise Allocate calls
  // the driver or system, and that call may wait for running device work. Another thread may take
  // the cached memory before Allocate is called.
  virtual bool HasFree(size_t bytes) const {
    (void)bytes;
    return true;
  }

  // Returns true if block contents are valid only at their address and must never be copied.
  virtual bool is_fixed() const { return false; }

  // Releases cached memory until at most `bytes` remain cached; returns the bytes that remain. Does
  // nothing for resources without a cache.
  virtual size_t TrimTo(size_t bytes) {
    (void)bytes;
    return 0;
  }

 protected:
  friend class Buffer;
  virtual absl::StatusOr<void*> DoAllocate(size_t bytes) = 0;
  // Frees a block returned by DoAllocate(bytes). Called when nothing uses the block any more:
  // device work must have ended before its buffers are destroyed.
  virtual void DoDeallocate(void* data, size_t bytes) = 0;
};

// Move-only owner of a block of a MemoryResource.
class Buffer {
 public:
  Buffer() = default;
  Buffer(MemoryResource* resource, void* data, size_t size)
      : resource_(resource), data_(data), size_(size) {}
  ~Buffer() { reset(); }
  Buffer(Buffer&& other) noexcept
      : resource_(other.resource_),
        data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      reset();
      resource_ = other.resource_;
      data_ = std::exchange(other.data_, nullptr);
      size_ = std::exchange(other.size_, 0);
    }
    return *this;
  }

  std::byte* data() const { return static_cast<std::byte*>(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }
  size_t size() const { return size_; }
  bool is_fixed() const { return resource_ != nullptr && resource_->is_fixed(); }
  explicit operator bool() const { return data_ != nullptr; }
  void reset() {
    if (data_ != nullptr) resource_->DoDeallocate(std::exchange(data_, nullptr), size_);
    size_ = 0;
  }

 private:
  MemoryResource* resource_ = nullptr;
  void* data_ = nullptr;
  size_t size_ = 0;
};

inline absl::StatusOr<Buffer> MemoryResource::Allocate(size_t bytes) {
  if (bytes == 0) return Buffer();
  auto data = DoAllocate(bytes);
  if (!data.ok()) return data.status();
  return Buffer(this, *data, bytes);
}

}  // namespace crout

#endif  // CROUT_KERNELS_MEMORY_H_
