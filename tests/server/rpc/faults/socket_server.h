// SPDX-License-Identifier: Apache-2.0

// A connection to the server over a socket, which tests can break.
#ifndef CROUT_TESTS_SERVER_RPC_FAULTS_SOCKET_SERVER_H_
#define CROUT_TESTS_SERVER_RPC_FAULTS_SOCKET_SERVER_H_

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <memory>

#include "crout/v1/factorization_service.grpc.pb.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/server_posix.h"
#include "gtest/gtest.h"
#include "server/rpc/service.h"

namespace crout::testing {

class SocketServer {
 public:
  explicit SocketServer(ServerCore& core) : service_(MakeFactorizationService(core)) {
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    server_ = builder.BuildAndStart();
    std::array<int, 2> ends = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_end_ = fcntl(ends[1], F_DUPFD_CLOEXEC, 0);
    EXPECT_GE(client_end_, 0);
    grpc::AddInsecureChannelFromFd(server_.get(), ends[0]);
    stub_ = v1::FactorizationService::NewStub(grpc::CreateInsecureChannelFromFd("socket", ends[1]));
  }
  ~SocketServer() {
    server_->Shutdown();
    close(client_end_);
  }
  SocketServer(const SocketServer&) = delete;  // owns a descriptor

  v1::FactorizationService::Stub& stub() { return *stub_; }
  void Disconnect() { EXPECT_EQ(shutdown(client_end_, SHUT_RDWR), 0); }

 private:
  const std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  int client_end_ = -1;
  std::unique_ptr<v1::FactorizationService::Stub> stub_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FAULTS_SOCKET_SERVER_H_
