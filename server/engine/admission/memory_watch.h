// SPDX-License-Identifier: Apache-2.0

// Reads a device's memory statistics periodically. Readers of the last result never wait for the
// device.
#ifndef CROUT_SERVER_ENGINE_ADMISSION_MEMORY_WATCH_H_
#define CROUT_SERVER_ENGINE_ADMISSION_MEMORY_WATCH_H_

#include <chrono>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "kernels/device.h"
#include "kernels/util/mutex.h"

namespace crout {

// Reads the memory statistics of a device every second, on its own thread. A device that hangs
// blocks only this thread. Thread-safe.
class MemoryWatch {
 public:
  struct Reading {
    DeviceMemoryStats stats;
    std::chrono::steady_clock::time_point start;  // time at which the reading started
  };

  // Takes the first reading before it returns. `device` outlives the watch.
  explicit MemoryWatch(const Device& device);
  // Waits until a reading in progress ends.
  ~MemoryWatch();
  MemoryWatch(const MemoryWatch&) = delete;  // Its thread points to it.
  MemoryWatch& operator=(const MemoryWatch&) = delete;

  // Returns the last completed reading.
  Reading last() const;

 private:
  static Reading Read(const Device& device);
  void Work() ABSL_LOCKS_EXCLUDED(mutex_);

  const Device& device_;
  mutable Mutex mutex_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Reading last_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_ADMISSION_MEMORY_WATCH_H_
