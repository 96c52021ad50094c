// SPDX-License-Identifier: Apache-2.0

// Writes lines to a file descriptor that may block.
#ifndef CROUT_SERVER_OBSERVABILITY_LOG_LOG_WRITER_H_
#define CROUT_SERVER_OBSERVABILITY_LOG_LOG_WRITER_H_

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/util/mutex.h"

namespace crout {

// Thread-safe. The writer thread may block in write(2) forever, so nothing joins it. An object
// therefore lives as long as the process.
class LogWriter {
 public:
  // Buffers at most `capacity` bytes of lines, not counting the lines being written.
  static LogWriter* Start(int fd, size_t capacity);

  // Queues `line`, which includes its newline, or drops it.
  void Push(std::string_view line);

  // Waits until all lines are written, or until no progress was made for `timeout`. Returns true
  // if all lines are written.
  bool Flush(std::chrono::milliseconds timeout);

  // Lines dropped so far because the buffer was full or the reading end was closed.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  // Returns the number of dropped lines that no log line has reported, and resets that number.
  // Returns 0 while the buffer is more than half full.
  uint64_t TakeUnreported();

 private:
  LogWriter(int fd, size_t capacity) : fd_(fd), capacity_(capacity) {}

  void Run();
  // Returns the number of bytes written.
  size_t Write(std::string_view text);
  void Drop(uint64_t lines);

  const int fd_;
  const size_t capacity_;
  Mutex mutex_;
  CondVar pushed_;
  CondVar progress_;
  std::string pending_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  std::atomic<uint64_t> written_bytes_ = 0;
  std::atomic<uint64_t> dropped_ = 0;
  std::atomic<uint64_t> unreported_ = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_OBSERVABILITY_LOG_LOG_WRITER_H_
