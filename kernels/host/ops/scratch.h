// Memory in which operations work.
#ifndef CROUT_KERNELS_HOST_OPS_SCRATCH_H_
#define CROUT_KERNELS_HOST_OPS_SCRATCH_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace crout::host {

// Two halves of a fixed size, whatever the matrices: a cost of the context that it belongs
// to, which no job is charged for. Pages that nothing was written to take no memory. Used by one
// operation at a time.
class Scratch {
 public:
  static constexpr int64_t kHalfBytes = int64_t{1} << 20;

  // Elements of T that fit into one of the two halves.
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
