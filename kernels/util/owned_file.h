// SPDX-License-Identifier: Apache-2.0

// A file descriptor with an owner.
#ifndef CROUT_KERNELS_UTIL_OWNED_FILE_H_
#define CROUT_KERNELS_UTIL_OWNED_FILE_H_

#include <unistd.h>

#include <utility>

namespace crout {

// Closes its file on destruction. Move-only.
class OwnedFile {
 public:
  OwnedFile() = default;
  explicit OwnedFile(int descriptor) : descriptor_(descriptor) {}
  ~OwnedFile() { Close(); }
  OwnedFile(OwnedFile&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  OwnedFile& operator=(OwnedFile&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }

  // Returns the descriptor; -1 if there is no file.
  int get() const { return descriptor_; }
  void Close() {
    if (descriptor_ >= 0) close(std::exchange(descriptor_, -1));
  }

 private:
  int descriptor_ = -1;
};

}  // namespace crout

#endif  // CROUT_KERNELS_UTIL_OWNED_FILE_H_
