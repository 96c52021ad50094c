// A peer of an HTTP server that may misbehave: raw bytes over TCP.
#ifndef CROUT_TESTS_SUPPORT_HTTP_PEER_H_
#define CROUT_TESTS_SUPPORT_HTTP_PEER_H_

#include <chrono>
#include <string>
#include <string_view>

#include "tests/support/patience.h"

namespace crout::testing {

class HttpPeer {
 public:
  // Connects to "127.0.0.1:port"; waits at most `patience` for each reply.
  explicit HttpPeer(const std::string& address,
                    std::chrono::milliseconds patience = absl::ToChronoMilliseconds(kPatience));
  ~HttpPeer();
  HttpPeer(const HttpPeer&) = delete;  // It owns a socket.
  HttpPeer& operator=(const HttpPeer&) = delete;

  bool connected() const { return connected_; }
  // Whether the other side has closed, as the last read found.
  bool ended() const { return ended_; }
  // False if the other side closed.
  bool Send(std::string_view bytes);
  // No more will be sent.
  void HalfClose();
  // Until the end of the next reply, whose length its header must tell; of a reply to HEAD, until
  // the end of its header. What came, if it ends before.
  std::string ReadReply(bool head = false);
  // Until the other side closes.
  std::string ReadToEnd();
  // Whether the other side closes, or has, within the patience, and sends nothing before.
  bool Closed() { return ReadToEnd().empty() && ended_; }

 private:
  bool ReadMore();

  int fd_;
  bool connected_ = false;
  bool ended_ = false;    // by the other side, not for want of patience
  std::string received_;  // beyond the last reply
};

// The reply to one request with `method` for `path`, on a connection of its own.
std::string HttpRequest(const std::string& address, const std::string& method,
                        const std::string& path);

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_HTTP_PEER_H_
