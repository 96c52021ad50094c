// SPDX-License-Identifier: Apache-2.0

// A peer of an HTTP server that can misbehave: sends and receives raw bytes over TCP.
#ifndef CROUT_TESTS_SUPPORT_HTTP_PEER_H_
#define CROUT_TESTS_SUPPORT_HTTP_PEER_H_

#include <chrono>
#include <string>
#include <string_view>

#include "tests/support/eventually.h"

namespace crout::testing {

class HttpPeer {
 public:
  // Connects to "127.0.0.1:port". Waits at most `timeout` for each reply.
  explicit HttpPeer(const std::string& address,
                    std::chrono::milliseconds timeout = absl::ToChronoMilliseconds(kTestTimeout));
  ~HttpPeer();
  HttpPeer(const HttpPeer&) = delete;  // It owns a socket.
  HttpPeer& operator=(const HttpPeer&) = delete;

  bool connected() const { return connected_; }
  // True if the last read found the connection closed by the server.
  bool ended() const { return ended_; }
  // Returns false if the server has closed the connection.
  bool Send(std::string_view bytes);
  // Closes the sending direction.
  void HalfClose();
  // Reads to the end of the next reply, whose header must contain its length; for a reply to HEAD,
  // to the end of the header. Returns the bytes received if the connection ends earlier.
  std::string ReadReply(bool head = false);
  // Reads until the server closes the connection.
  std::string ReadToEnd();
  // True if the server closes the connection within the timeout without sending anything.
  bool Closed() { return ReadToEnd().empty() && ended_; }

 private:
  bool ReadMore();

  int fd_;
  bool connected_ = false;
  bool ended_ = false;    // closed by the server, not timed out
  std::string received_;  // bytes beyond the last reply
};

// Sends one request with `method` for `path` on a new connection and returns the reply.
std::string HttpRequest(const std::string& address, const std::string& method,
                        const std::string& path);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_HTTP_PEER_H_
