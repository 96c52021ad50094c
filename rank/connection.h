// SPDX-License-Identifier: Apache-2.0

// A connection of crout-rank to its daemon.
#ifndef CROUT_RANK_CONNECTION_H_
#define CROUT_RANK_CONNECTION_H_

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "crout/rank/v1/rank_service.grpc.pb.h"
#include "rank/command_line.h"

namespace crout::rank {

// Thread-safe.
class Connection {
 public:
  // Reads the files of the settings; does not connect yet. Throws std::runtime_error if a file
  // cannot be read, or a token would be sent without encryption.
  explicit Connection(const CommandLine& settings);

  v1::RankService::Stub& stub() { return *stub_; }
  // Adds the token of the identity, if there is one, to a call.
  void Authorize(grpc::ClientContext& context) const;

 private:
  std::string authorization_;
  std::unique_ptr<v1::RankService::Stub> stub_;
};

}  // namespace crout::rank

#endif  // CROUT_RANK_CONNECTION_H_
