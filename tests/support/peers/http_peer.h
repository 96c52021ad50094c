// SPDX-License-Identifier: Apache-2.0

// An HTTP client that can violate the protocol: sends and receives raw bytes over TCP.
#ifndef CROUT_TESTS_SUPPORT_PEERS_HTTP_PEER_H_
#define CROUT_TESTS_SUPPORT_PEERS_HTTP_PEER_H_

#include <chrono>
#include <string>
#include <string_view>

#include "tests/support/timing/eventually.h"

namespace crout::testing {

class HttpPeer {
 public:
  // Connects to `address`, such as "127.0.0.1:9464". Each receive waits at most `timeout`.
  explicit HttpPeer(const std::string& address,
                    std::chrono::milliseconds timeout = absl::ToChronoMilliseconds(kTestTimeout));
  ~HttpPeer();
  HttpPeer(const HttpPeer&) = delete;  // It owns a socket.
  HttpPeer& operator=(const HttpPeer&) = delete;

  bool connected() const { return connected_; }
  // True if the last read found that the server had closed or reset the connection.
  bool ended() const { return ended_; }
  // Sends all bytes. Returns false if the server has closed the connection.
  bool Send(std::string_view bytes);
  // Closes the sending direction.
  void HalfClose();
  // Returns the next reply: the header and the body of the length in Content-Length, or only the
  // header for a reply to HEAD. Returns the bytes received so far if the connection ends or the
  // timeout expires first.
  std::string ReadReply(bool head = false);
  // Reads until the server closes the connection or the timeout expires.
  std::string ReadToEnd();
  // Returns true if the server closes the connection within the timeout without sending anything.
  bool Closed() { return ReadToEnd().empty() && ended_; }

 private:
  bool ReadMore();

  int fd_;
  bool connected_ = false;
  bool ended_ = false;    // the server closed the connection; false after a timeout
  std::string received_;  // bytes beyond the last reply
};

// Sends one request on a new connection and returns the reply with its header, or what arrived
// before a timeout.
std::string HttpRequest(const std::string& address, const std::string& method,
                        const std::string& path);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_PEERS_HTTP_PEER_H_
