// SPDX-License-Identifier: Apache-2.0

// Writes lines to a file descriptor that may not take them.
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

// Thread-safe. Its thread may stay in write(2) for good, so nothing ever waits for it to end: it is
// made once and lives as long as the process.
class LogWriter {
 public:
  // Takes at most `capacity` bytes of lines beyond those that are being written.
  static LogWriter* Start(int fd, size_t capacity);

  // Takes `line`, with its end, or drops it.
  void Push(std::string_view line);

  // Waits until all lines are written, or none was for `patience`; whether they are.
  bool Flush(std::chrono::milliseconds patience);

  // Lines dropped so far: for want of room, or because the other side of the descriptor closed.
  uint64_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  // Lines dropped since the last time that this was asked and there was room to report them.
  uint64_t TakeUnreported();

 private:
  LogWriter(int fd, size_t capacity) : fd_(fd), capacity_(capacity) {}

  void Run();
  // Returns how many bytes could be written.
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
