// SPDX-License-Identifier: Apache-2.0

#include "server/net/memory_listener.h"

#include <endian.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
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

// An offer as it is sent.
struct OfferMessage {
  char magic[sizeof kMemoryMagic];
  uint64_t size;  // little-endian
};
static_assert(sizeof(OfferMessage) == 16);

struct ReceivedOffer {
  OwnedFile file;
  uint64_t size = 0;
};

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

absl::StatusOr<ReceivedOffer> Receive(int socket) {
  OfferMessage offer = {};
  iovec bytes = {.iov_base = &offer, .iov_len = sizeof offer};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFiles * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = &bytes;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  const ssize_t count = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  if (count < 0 && (errno == EAGAIN || errno == EINTR))
    return absl::UnavailableError("no offer yet");
  if (count <= 0) return absl::CancelledError("the client has closed the connection");
  std::vector<OwnedFile> files = TakeFiles(message);
  constexpr int kCut = MSG_TRUNC | MSG_CTRUNC;
  if (count != sizeof offer || (message.msg_flags & kCut) != 0 ||
      std::memcmp(offer.magic, kMemoryMagic, sizeof offer.magic) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("the offer is not ", sizeof offer,
                                                   " bytes that start with ", kMemoryMagic,
                                                   ". Use a client of the server's version"));
  }
  if (files.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("the offer has ", files.size(), " file descriptors. Send exactly one"));
  }
  return ReceivedOffer{std::move(files.front()), le64toh(offer.size)};
}

}  // namespace

// The state of a connection that offers share with the listener.
class MemoryListener::Connection {
 public:
  Connection(OwnedFile socket, uid_t user) : user_(user), socket_(std::move(socket)) {}

  uid_t user() const { return user_; }
  // The descriptor, for the thread of the listener, which alone closes it.
  int socket() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return socket_.get();
  }
  // Whether the client has sent its offer. Used by the thread of the listener.
  bool has_offer = false;

  // Keeps the grant while the connection is open, and answers the client.
  void Answer(absl::StatusOr<Grant> grant) ABSL_LOCKS_EXCLUDED(mutex_) {
    const std::string reply = grant.ok()
                                  ? absl::StrCat(std::string(1, '\0'), grant->id)
                                  : absl::StrCat("\1", std::string(grant.status().message()));
    MutexLock lock(&mutex_);
    if (socket_.get() < 0) return;
    if (grant.ok()) region_ = std::move(grant->region);
    send(socket_.get(), reply.data(), reply.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
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
                                                                     Offer offer) {
  OwnedFile stop(eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) {
    return absl::UnavailableError(absl::StrCat("eventfd: ", std::strerror(errno)));
  }
  CROUT_ASSIGN_OR_RETURN(const int socket, ListenUnix(path, SOCK_SEQPACKET));
  return std::unique_ptr<MemoryListener>(
      new MemoryListener(path, OwnedFile(socket), std::move(stop), std::move(offer)));
}

MemoryListener::MemoryListener(std::string path, OwnedFile socket, OwnedFile stop, Offer offer)
    : path_(std::move(path)),
      offer_(std::move(offer)),
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
      if (!open) AbandonOnBadAlloc([&] { open = ReadOffer(connections_[i]); });
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

bool MemoryListener::ReadOffer(const std::shared_ptr<Connection>& connection) {
  if (connection->has_offer) return false;  // The client has closed it, or violates the protocol.
  absl::StatusOr<ReceivedOffer> offer = Receive(connection->socket());
  if (absl::IsUnavailable(offer.status())) return true;
  if (absl::IsCancelled(offer.status())) return false;
  connection->has_offer = true;
  const auto answer = [connection, refused = refused_](absl::StatusOr<Grant> grant) {
    if (!grant.ok()) ++*refused;
    connection->Answer(std::move(grant));
  };
  if (offer.ok()) {
    offer_(std::move(offer->file), offer->size, connection->user(), answer);
  } else {
    answer(offer.status());
  }
  return true;
}

}  // namespace crout
