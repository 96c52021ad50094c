// SPDX-License-Identifier: Apache-2.0

#include "server/net/connection_calls.h"

#include <grpcpp/security/auth_context.h>

#include <iterator>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "kernels/util/clock.h"

namespace crout {
namespace {

// Idle time after which a connection without pending calls is removed. Charged calls of the
// connection continue.
constexpr std::chrono::seconds kIdleTime{60};

// Returns a property of the call's connection, or "" if the connection does not have it.
std::string Property(const grpc::ServerContextBase& context, const char* name) {
  const auto connection = context.auth_context();
  if (connection == nullptr) return "";
  const auto values = connection->FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

}  // namespace

std::string UserOf(const grpc::ServerContextBase& context) {
  return Property(context, kUserProperty);
}

ConnectionCalls::Entry& ConnectionCalls::Entry::operator=(Entry&& other) noexcept {
  if (this != &other) {
    End();
    calls_ = other.calls_;
    connection_ = std::move(other.connection_);
    charged_ = other.charged_;
    read_ = other.read_;
    client_left_ = other.client_left_;
  }
  return *this;
}

void ConnectionCalls::Entry::Charged() {
  if (connection_ == nullptr || std::exchange(charged_, true)) return;
  MutexLock lock(&calls_->mutex_);
  calls_->RemovePending(*connection_);
}

void ConnectionCalls::Entry::HeaderRead() {
  if (connection_ == nullptr || std::exchange(read_, true)) return;
  MutexLock lock(&calls_->mutex_);
  calls_->RecordOutcome(*connection_, Outcome::kRead);
}

void ConnectionCalls::Entry::End() {
  const std::shared_ptr<Connection> connection = std::move(connection_);
  if (connection == nullptr) return;
  std::string peer;
  {
    MutexLock lock(&calls_->mutex_);
    if (!charged_) calls_->RemovePending(*connection);
    if (!read_)
      calls_->RecordOutcome(*connection, client_left_ ? Outcome::kAbandoned : Outcome::kEnded);
    peer = calls_->PeerToClose(*connection);
  }
  calls_->Close(peer);
}

uint64_t ConnectionCalls::NewConnection() {
  MutexLock lock(&mutex_);
  return ++last_connection_;
}

bool ConnectionCalls::Admit(uint64_t connection) {
  std::string peer;
  {
    MutexLock lock(&mutex_);
    std::shared_ptr<Connection>& found = connections_[connection];
    if (found == nullptr) found = std::make_shared<Connection>();
    if (HasCapacityFor(*found)) {
      ++found->pending;
      ++pending_;
      found->last = SteadyNow();
      return true;
    }
    // If only the limit of all connections is reached, other connections may be the cause.
    if (found->pending >= kMaxPendingPerConnection) RecordOutcome(*found, Outcome::kAbandoned);
    peer = PeerToClose(*found);
  }
  Close(peer);
  return false;
}

bool ConnectionCalls::HasCapacityFor(const Connection& connection) const {
  if (connection.closed) return false;
  return connection.pending < (pending_ < kMaxPending ? kMaxPendingPerConnection : kAlwaysPending);
}

ConnectionCalls::Entry ConnectionCalls::Begin(const grpc::ServerContextBase& context) {
  uint64_t connection = 0;
  const bool numbered = absl::SimpleAtoi(Property(context, kConnectionProperty), &connection);
  return numbered ? Begin(connection, context.peer()) : Entry();
}

ConnectionCalls::Entry ConnectionCalls::Begin(uint64_t connection, std::string_view peer) {
  MutexLock lock(&mutex_);
  const auto found = connections_.find(connection);
  if (found == connections_.end()) return {};
  if (found->second->peer.empty()) found->second->peer = peer;
  return {this, found->second};
}

void ConnectionCalls::RecordOutcome(Connection& connection, Outcome outcome) {
  const Clock::time_point now = SteadyNow();
  if (now - connection.window >= kWindow) {
    connection.window = now;
    connection.completed = connection.abandoned = 0;
  }
  connection.last = now;
  ++connection.completed;
  if (outcome == Outcome::kAbandoned) ++connection.abandoned;
}

void ConnectionCalls::RemovePending(Connection& connection) {
  --connection.pending;
  --pending_;
}

std::string ConnectionCalls::PeerToClose(Connection& connection) {
  const bool flood = limits_.calls > 0 && connection.abandoned > limits_.calls &&
                     static_cast<double>(connection.abandoned) >
                         limits_.share * static_cast<double>(connection.completed);
  if (!flood || connection.closed || connection.peer.empty()) return "";
  connection.closed = true;
  return connection.peer;
}

void ConnectionCalls::Close(const std::string& peer) const {
  if (!peer.empty() && disconnect_) disconnect_(peer);
}

void ConnectionCalls::Housekeep(Clock::time_point now) {
  MutexLock lock(&mutex_);
  for (auto next = connections_.begin(); next != connections_.end();) {
    const Connection& connection = *next->second;
    const bool idle = connection.pending == 0 && now - connection.last >= kIdleTime;
    next = idle ? connections_.erase(next) : std::next(next);
  }
}

}  // namespace crout
