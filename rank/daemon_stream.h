// SPDX-License-Identifier: Apache-2.0

// A stream of messages between this process and the daemon, with heartbeats.
#ifndef CROUT_RANK_DAEMON_STREAM_H_
#define CROUT_RANK_DAEMON_STREAM_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <thread>
#include <utility>

#include "rank/connection.h"

namespace crout::rank {

// Sends a heartbeat every second, which the daemon answers. Ends the stream after kSilence without
// any message from the daemon. Thread-safe.
template <class Out, class In>
class DaemonStream {
 public:
  using Clock = std::chrono::steady_clock;
  using Grpc = grpc::ClientReaderWriter<Out, In>;
  using Method = std::unique_ptr<Grpc> (v1::RankService::Stub::*)(grpc::ClientContext*);

  static constexpr std::chrono::seconds kSilence{5};

  // Calls `method` and sends `hello`. Calls `on_end`, on another thread, when the stream has ended.
  DaemonStream(Connection& connection, Method method, const Out& hello,
               std::function<void(const grpc::Status&)> on_end)
      : on_end_(std::move(on_end)) {
    connection.Authorize(context_);
    stream_ = (connection.stub().*method)(&context_);
    Write(hello);
    reader_ = std::thread([this] { ReadAll(); });
    heart_ = std::thread([this] { Beat(); });
    watch_ = std::thread([this] { Watch(); });
  }
  // Ends the stream.
  ~DaemonStream() {
    context_.TryCancel();
    reader_.join();
    heart_.join();
    watch_.join();
  }
  DaemonStream(const DaemonStream&) = delete;  // It owns threads.
  DaemonStream& operator=(const DaemonStream&) = delete;

  // Does nothing after the stream has ended.
  void Write(const Out& message) {
    const std::lock_guard lock(write_mutex_);
    if (!finished_) stream_->Write(message);
  }

  // Waits for the next message of the daemon. Returns nothing after `timeout`, and when the stream
  // has ended.
  std::optional<In> Next(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return ended_ || !messages_.empty(); });
    if (messages_.empty()) return std::nullopt;
    In message = std::move(messages_.front());
    messages_.pop();
    return message;
  }

 private:
  void ReadAll() {
    In message;
    while (stream_->Read(&message)) {
      const std::lock_guard lock(mutex_);
      last_heard_ = Clock::now();
      if (message.has_heartbeat()) continue;
      messages_.push(std::move(message));
      changed_.notify_all();
    }
    {
      const std::lock_guard lock(write_mutex_);
      finished_ = true;
    }
    on_end_(stream_->Finish());
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

  void Beat() {
    Out message;
    message.mutable_heartbeat();
    while (!WaitForEnd(std::chrono::seconds(1))) Write(message);
  }

  // A separate thread, because a write waits while the network does not work.
  void Watch() {
    while (!WaitForEnd(std::chrono::milliseconds(200))) {
      const std::lock_guard lock(mutex_);
      if (Clock::now() - last_heard_ > kSilence) context_.TryCancel();
    }
  }

  // Returns true if the stream ends within `time`.
  bool WaitForEnd(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [this] { return ended_; });
  }

  const std::function<void(const grpc::Status&)> on_end_;
  grpc::ClientContext context_;
  std::unique_ptr<Grpc> stream_;
  std::mutex write_mutex_;
  bool finished_ = false;  // guarded by write_mutex_
  std::mutex mutex_;       // guards the members below
  std::condition_variable changed_;
  std::queue<In> messages_;
  bool ended_ = false;
  Clock::time_point last_heard_ = Clock::now();
  std::thread reader_;
  std::thread heart_;
  std::thread watch_;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_DAEMON_STREAM_H_
