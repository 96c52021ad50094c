// SPDX-License-Identifier: Apache-2.0

// An HTTP server that sends scripted bytes, which may violate the protocol.
#ifndef CROUT_TESTS_SUPPORT_PEERS_SCRIPTED_HTTP_SERVER_H_
#define CROUT_TESTS_SUPPORT_PEERS_SCRIPTED_HTTP_SERVER_H_

#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "kernels/util/mutex.h"

namespace crout::testing {

// Accepts connections on a port of the loopback address, reads one request from each, sends the
// next reply and closes the connection. Without a next reply, keeps the connection open and silent.
class ScriptedHttpServer {
 public:
  ScriptedHttpServer();
  ~ScriptedHttpServer();
  ScriptedHttpServer(const ScriptedHttpServer&) = delete;  // Its thread points to it.
  ScriptedHttpServer& operator=(const ScriptedHttpServer&) = delete;

  int port() const { return port_; }
  // Adds a reply: all its bytes, or if `complete` is false, bytes after which the connection stays
  // open and silent.
  void Add(std::string reply, bool complete = true);
  // Blocks until `count` requests have arrived completely. Returns them.
  std::vector<std::string> AwaitRequests(size_t count);

 private:
  struct Reply {
    std::string bytes;
    bool complete = true;
  };

  void Serve();

  const int listener_;
  int port_ = 0;
  Mutex mutex_;
  CondVar changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  int current_ ABSL_GUARDED_BY(mutex_) = -1;  // connection that is being read
  std::deque<Reply> replies_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> requests_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PEERS_SCRIPTED_HTTP_SERVER_H_
