// SPDX-License-Identifier: Apache-2.0

#include "server/net/memory_listener.h"

#include <endian.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/util/allocation.h"
#include "kernels/util/mutex.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/thread.h"
#include "server/net/unix_socket.h"

namespace crout {
namespace {

constexpr size_t kMaxPerUser = MemoryListener::kMaxConnections / 4;
// Descriptors that fit into the control buffer. The system closes the others of a message.
constexpr size_t kMaxFiles = 4;

// A request as it is sent. An offer of a file ends before `gpu`.
struct RequestMessage {
  char magic[sizeof kMemoryMagic];
  uint64_t size;  // little-endian
  char gpu[kGpuUuidBytes];
};
constexpr size_t kOfferBytes = offsetof(RequestMessage, gpu);
static_assert(sizeof kGpuMemoryMagic == sizeof kMemoryMagic && kOfferBytes == 16 &&
              sizeof(RequestMessage) == 32);

// Takes over all descriptors of a message.
std::vector<OwnedFile> TakeFiles(msghdr& message) {
  std::vector<OwnedFile> files;
  files.reserve(kMaxFiles);
  for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
       part = CMSG_NXTHDR(&message, part)) {
    if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int descriptor = -1;
      std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof(int), sizeof(int));
      files.emplace_back(descriptor);
    }
  }
  return files;
}

absl::StatusOr<MemoryListener::Request> Receive(int socket) {
  RequestMessage sent = {};
  iovec bytes = {.iov_base = &sent, .iov_len = sizeof sent};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFiles * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return absl::UnavailableError("no request yet");
  if (count <= 0) return absl::CancelledError("the client has closed the connection");
  std::vector<OwnedFile> files = TakeFiles(message);
  constexpr int kCut = MSG_TRUNC | MSG_CTRUNC;
  const auto is = [&](const char* magic, size_t size) {
    return count == static_cast<ssize_t>(size) && (message.msg_flags & kCut) == 0 &&
           std::memcmp(sent.magic, magic, sizeof sent.magic) == 0;
  };
  MemoryListener::Request request;
  request.size = le64toh(sent.size);
  if (is(kGpuMemoryMagic, sizeof sent)) {
    request.gpu.assign(sent.gpu, sizeof sent.gpu);
  } else if (!is(kMemoryMagic, kOfferBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the offer is not ", kOfferBytes, " bytes that start with ", kMemoryMagic,
                     ", or ", sizeof sent, " that start with ", kGpuMemoryMagic,
                     ". Use a client of the server's version"));
  }
  const size_t expected = request.gpu.empty() ? 1 : 0;
  if (files.size() != expected) {
    return absl::InvalidArgumentError(absl::StrCat("the offer has ", files.size(),
                                                   " file descriptors. Send exactly ",
                                                   expected == 1 ? "one" : "none"));
  }
  if (expected == 1) request.file = std::move(files.front());
  return request;
}

// Sends a message with a descriptor, unless that is -1. A client that reads nothing gets no answer.
void SendWithFile(int socket, std::string& text, int file) {
  iovec bytes = {.iov_base = text.data(), .iov_len = text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  if (file >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* const part = CMSG_FIRSTHDR(&message);
    part->cmsg_level = SOL_SOCKET;
    part->cmsg_type = SCM_RIGHTS;
    part->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(part), &file, sizeof(int));
  }
  (void)!sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
}

std::string AnswerTo(const absl::StatusOr<MemoryListener::Grant>& grant) {
  if (!grant.ok()) return absl::StrCat("\1", std::string(grant.status().message()));
  std::string answer = absl::StrCat(std::string(1, '\0'), grant->id);
  if (grant->file.get() < 0) return answer;
  const uint64_t size = htole64(grant->size);
  answer.append(reinterpret_cast<const char*>(&size), sizeof size);
  return answer;
}

}  // namespace

// The state of a connection that requests share with the listener.
class MemoryListener::Connection {
 public:
  Connection(OwnedFile socket, uid_t user) : user_(user), socket_(std::move(socket)) {}

  uid_t user() const { return user_; }
  // The descriptor, for the thread of the listener, which alone closes it.
  int socket() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return socket_.get();
  }
  // Whether the client has sent its request. Used by the thread of the listener.
  bool has_request = false;

  // Keeps the grant while the connection is open, and answers the client.
  void Answer(absl::StatusOr<Grant> grant) ABSL_LOCKS_EXCLUDED(mutex_) {
    std::string answer = AnswerTo(grant);
    MutexLock lock(&mutex_);
    if (socket_.get() < 0) return;
    if (grant.ok()) region_ = std::move(grant->region);
    SendWithFile(socket_.get(), answer, grant.ok() ? grant->file.get() : -1);
    // The thread of the listener then sees the end of the connection.
    if (!grant.ok()) shutdown(socket_.get(), SHUT_RDWR);
  }

  void Close() ABSL_LOCKS_EXCLUDED(mutex_) {
    std::shared_ptr<const void> region;  // released without the lock
    MutexLock lock(&mutex_);
    region = std::move(region_);
    socket_.Close();
  }

 private:
  const uid_t user_;
  Mutex mutex_;
  OwnedFile socket_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const void> region_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<MemoryListener>> MemoryListener::Bind(const std::string& path,
                                                                     Map map) {
  OwnedFile stop(eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) {
    return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  }
  CROUT_ASSIGN_OR_RETURN(const int socket, ListenUnix(path, SOCK_SEQPACKET));
  return std::unique_ptr<MemoryListener>(
      new MemoryListener(path, OwnedFile(socket), std::move(stop), std::move(map)));
}

MemoryListener::MemoryListener(std::string path, OwnedFile socket, OwnedFile stop, Map map)
    : path_(std::move(path)),
      map_(std::move(map)),
      socket_(std::move(socket)),
      stop_(std::move(stop)) {}

MemoryListener::~MemoryListener() { Stop(); }

void MemoryListener::Start() {
  thread_ = StartThread([this] { Run(); });
}

void MemoryListener::Stop() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    (void)!write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  for (const auto& connection : connections_) connection->Close();
  connections_.clear();
  if (socket_.get() >= 0) unlink(path_.c_str());
  socket_.Close();
}

void MemoryListener::Run() {
  std::vector<pollfd> polled;
  polled.reserve(kMaxConnections + 2);
  for (;;) {
    polled.clear();
    polled.push_back({.fd = stop_.get(), .events = POLLIN, .revents = 0});
    polled.push_back({.fd = socket_.get(), .events = POLLIN, .revents = 0});
    for (const auto& connection : connections_) {
      polled.push_back({.fd = connection->socket(), .events = POLLIN, .revents = 0});
    }
    if (poll(polled.data(), polled.size(), -1) < 0) {
      if (errno != EINTR) PauseAccepting(stop_.get());
      continue;
    }
    if (polled[0].revents != 0) return;
    for (size_t i = 0; i < connections_.size(); ++i) {
      bool open = polled[i + 2].revents == 0;
      if (!open) AbandonOnBadAlloc([&] { open = ReadRequest(connections_[i]); });
      if (!open) connections_[i]->Close();
    }
    std::erase_if(connections_, [](const auto& connection) { return connection->socket() < 0; });
    if (polled[1].revents != 0) AbandonOnBadAlloc([this] { Accept(); });
  }
}

void MemoryListener::Accept() {
  OwnedFile socket(accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.get() < 0) {
    if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED) PauseAccepting(stop_.get());
    return;
  }
  const uid_t user = UserAt(socket.get());
  const auto count =
      std::count_if(connections_.begin(), connections_.end(),
                    [&](const auto& connection) { return connection->user() == user; });
  if (connections_.size() >= kMaxConnections || static_cast<size_t>(count) >= kMaxPerUser) {
    ++*refused_;
    return;
  }
  connections_.push_back(std::make_shared<Connection>(std::move(socket), user));
}

bool MemoryListener::ReadRequest(const std::shared_ptr<Connection>& connection) {
  if (connection->has_request) return false;  // The client has closed it, or violates the protocol.
  absl::StatusOr<Request> request = Receive(connection->socket());
  if (absl::IsUnavailable(request.status())) return true;
  if (absl::IsCancelled(request.status())) return false;
  connection->has_request = true;
  const auto answer = [connection, refused = refused_](absl::StatusOr<Grant> grant) {
    if (!grant.ok()) ++*refused;
    connection->Answer(std::move(grant));
  };
  if (request.ok()) {
    request->user = connection->user();
    map_(*std::move(request), answer);
  } else {
    answer(request.status());
  }
  return true;
}

}  // namespace crout
