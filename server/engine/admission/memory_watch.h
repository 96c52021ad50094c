// SPDX-License-Identifier: Apache-2.0

// What a device says of its memory, for those who must not wait for it.
#ifndef CROUT_SERVER_ENGINE_ADMISSION_MEMORY_WATCH_H_
#define CROUT_SERVER_ENGINE_ADMISSION_MEMORY_WATCH_H_

#include <chrono>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "kernels/device.h"
#include "kernels/util/mutex.h"

namespace crout {

// Asks the device every second, on a thread of its own: one that hangs holds up that alone.
// Thread-safe.
class MemoryWatch {
 public:
  struct Answer {
    DeviceMemoryStats stats;
    std::chrono::steady_clock::time_point asked;
  };

  // Asks for the first time. `device` outlives the watch.
  explicit MemoryWatch(const Device& device);
  // Waits for the device's answer.
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;  // Its thread points to it.
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  Answer last() const;

 private:
  static Answer Ask(const Device& device);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Device& device_;
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Answer last_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_MEMORY_WATCH_H_
