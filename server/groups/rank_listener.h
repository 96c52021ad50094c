// SPDX-License-Identifier: Apache-2.0

// The server of the protocol between the daemon and the ranks of a group.
#ifndef CROUT_SERVER_GROUPS_RANK_LISTENER_H_
#define CROUT_SERVER_GROUPS_RANK_LISTENER_H_

#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "crout/rank/v1/rank_service.grpc.pb.h"
#include "kernels/util/mutex.h"

namespace crout {

// The stream of one rank. Thread-safe.
class RankStream {
 public:
  using Grpc = grpc::ServerReaderWriter<rank::v1::GroupMessage, rank::v1::RankMessage>;

  RankStream(grpc::ServerContext* context, Grpc* stream) : context_(context), stream_(stream) {}

  // Sends a message. Does nothing after the stream has ended, which RankEvents::Left reports.
  void Write(const rank::v1::GroupMessage& message);
  // Ends the stream.
  void Cancel();
  // Call it when the stream has ended and before its objects are destroyed.
  void Close();

 private:
  Mutex mutex_;
  grpc::ServerContext* context_ ABSL_GUARDED_BY(mutex_);  // null after Close()
  Grpc* stream_ ABSL_GUARDED_BY(mutex_);
};

// Receives what ranks send, on one thread for each rank.
class RankEvents {
 public:
  virtual ~RankEvents() = default;

  // A rank requests to join. It is refused with the status if that is an error; no other event of
  // the stream follows.
  virtual absl::Status Joined(std::shared_ptr<RankStream> stream, const rank::v1::Hello& hello) = 0;
  virtual void Received(const RankStream& stream, const rank::v1::RankMessage& message) = 0;
  // The stream has ended.
  virtual void Left(const RankStream& stream) = 0;
};

// Listens on a Unix socket until it is destroyed.
class RankListener {
 public:
  // UNAVAILABLE if the socket cannot be bound. `events` must outlive the listener.
  static absl::StatusOr<std::unique_ptr<RankListener>> Start(const std::string& socket,
                                                             RankEvents& events);
  // Ends all streams and waits for their last events.
  ~RankListener();

 private:
  class Service;

  RankListener();

  std::unique_ptr<Service> service_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace crout

#endif  // CROUT_SERVER_GROUPS_RANK_LISTENER_H_
