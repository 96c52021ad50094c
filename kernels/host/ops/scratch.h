// SPDX-License-Identifier: Apache-2.0

// Scratch memory for matrix operations.
#ifndef CROUT_KERNELS_HOST_OPS_SCRATCH_H_
#define CROUT_KERNELS_HOST_OPS_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace crout::host {

// Two halves of fixed size for matrices of any size. The memory belongs to the context and is not
// charged to jobs. Pages that were never written take no memory. One operation at a time may use
// it.
class Scratch {
 public:
  static constexpr int64_t kHalfBytes = int64_t{1} << 20;

  // Number of elements of T that fit into one half.
  template <class T>
  static constexpr int64_t Count() {
    return kHalfBytes / static_cast<int64_t>(sizeof(T));
  }

  template <class T>
  T* first() {
    return reinterpret_cast<T*>(memory_.get());
  }
  template <class T>
  T* second() {
    return reinterpret_cast<T*>(memory_.get() + kHalfBytes);
  }

 private:
  std::unique_ptr<std::byte[]> memory_ =
      std::make_unique_for_overwrite<std::byte[]>(2 * kHalfBytes);
};

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_SCRATCH_H_
