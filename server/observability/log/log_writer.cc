// SPDX-License-Identifier: Apache-2.0

#include "server/observability/log/log_writer.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <thread>
#include <utility>

#include "kernels/util/clock.h"
#include "kernels/util/thread.h"

namespace crout {

LogWriter* LogWriter::Start(int fd, size_t capacity) {
  auto* const writer = new LogWriter(fd, capacity);
  StartThread([writer] { writer->Run(); }).detach();
  return writer;
}

void LogWriter::Push(std::string_view line) {
  MutexLock lock(&mutex_);
  if (line.size() > capacity_ - std::min(capacity_, pending_.size())) return Drop(1);
  pending_.append(line);
  pushed_.Signal();
}

void LogWriter::Drop(uint64_t lines) {
  dropped_.fetch_add(lines, std::memory_order_relaxed);
  unreported_.fetch_add(lines, std::memory_order_relaxed);
}

uint64_t LogWriter::TakeUnreported() {
  if (unreported_.load(std::memory_order_relaxed) == 0) return 0;
  MutexLock lock(&mutex_);
  if (pending_.size() > capacity_ / 2) return 0;
  return unreported_.exchange(0, std::memory_order_relaxed);
}

bool LogWriter::Flush(std::chrono::milliseconds timeout) {
  MutexLock lock(&mutex_);
  while (!pending_.empty() || writing_) {
    const uint64_t before = written_bytes_;
    const bool progressed = progress_.WaitUntil(&mutex_, SteadyNow() + timeout);
    if (!progressed && written_bytes_ == before) return false;
  }
  return true;
}

void LogWriter::Run() {
  // Without SIGPIPE, a write to a closed pipe fails and is counted instead of ending the process.
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  std::string lines;
  MutexLock lock(&mutex_);
  for (;;) {
    while (pending_.empty()) pushed_.Wait(&mutex_);
    lines.clear();
    std::swap(lines, pending_);
    writing_ = true;
    mutex_.Unlock();
    const size_t done = Write(lines);
    Drop(static_cast<uint64_t>(
        std::count(lines.begin() + static_cast<std::ptrdiff_t>(done), lines.end(), '\n')));
    mutex_.Lock();
    writing_ = false;
    progress_.SignalAll();
  }
}

size_t LogWriter::Write(std::string_view text) {
  constexpr size_t kMaxWriteBytes = size_t{64} << 10;  // small pieces let Flush detect progress
  size_t done = 0;
  while (done < text.size()) {
    const ssize_t written =
        write(fd_, text.data() + done, std::min(kMaxWriteBytes, text.size() - done));
    if (written >= 0) {
      done += static_cast<size_t>(written);
      written_bytes_ += static_cast<uint64_t>(written);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd writable = {fd_, POLLOUT, 0};
      poll(&writable, 1, -1);
    } else if (errno != EINTR) {
      break;
    }
  }
  return done;
}

}  // namespace crout
