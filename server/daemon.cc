// SPDX-License-Identifier: Apache-2.0

#include "server/daemon.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "grpc/compression.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/resource_quota.h"
#include "grpcpp/server_builder.h"
#include "kernels/util/allocation.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "kernels/util/thread.h"
#include "server/auth/listener_credentials.h"
#include "server/engine/error.h"
#include "server/groups/rank_listener.h"
#include "server/net/bounded_credentials.h"
#include "server/net/listen_address.h"
#include "server/observability/status/status_page.h"
#include "server/operations_pages.h"
#include "server/rpc/caller.h"
#include "server/start_log.h"

namespace crout {
namespace {

using Clock = std::chrono::steady_clock;

// Largest number of concurrent calls of one connection; further calls wait at the client. Each call
// costs about 24 KB even when idle. Without the limit, a client could occupy the server by opening
// and resetting streams.
constexpr int kMaxCallsOfConnection = ConnectionCalls::kMaxStreams;
// Largest read from a connection. gRPC starts all calls in the data of one read before it ends any
// of them: about 2,000 in 64 KiB.
constexpr int kMaxReadBytes = 64 << 10;
// Limit for the names and values of a call's headers. Crout's own headers have a few hundred bytes.
constexpr int kMaxMetadataBytes = 8192;
// Time limit from the TCP connection to the peer's HTTP/2 settings.
constexpr int kHandshakeMs = 10'000;
// Pings detect clients that vanished without closing the connection; their calls end.
constexpr int kKeepaliveMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
// Shortest interval between a client's pings. Crout's clients ping every 25 s. The third ping that
// comes sooner ends the connection.
constexpr int kMinPingIntervalMs = 10'000;
constexpr int kPingStrikes = 2;
constexpr int kFrameBytes = 4 << 20;
// Largest number of users of one Unix socket that have their own acceptor at the same time.
constexpr size_t kUsersOfSocket = 32;
constexpr auto kHousekeepingPeriod = std::chrono::seconds(1);
// Time limit for aborted calls to finish.
constexpr auto kAbortTimeout = std::chrono::seconds(5);
// Time limit for idle connections to close when no call is left.
constexpr auto kCloseTimeout = std::chrono::seconds(1);

constexpr absl::string_view kUnix = "unix:";

bool IsUnix(const std::string& address) { return absl::StartsWith(address, kUnix); }

int ToMilliseconds(absl::Duration limit) {
  const int64_t milliseconds = absl::ToInt64Milliseconds(limit);
  return static_cast<int>(std::min<int64_t>(milliseconds, std::numeric_limits<int>::max()));
}

// Limits the resources that one connection can use.
void LimitPeers(absl::Duration max_connection_age, grpc::ServerBuilder& builder) {
  const std::pair<const char*, int> limits[] = {
      {GRPC_ARG_MAX_METADATA_SIZE, kMaxMetadataBytes},
      {GRPC_ARG_MAX_CONCURRENT_STREAMS, kMaxCallsOfConnection},
      {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeMs},
      {GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs},
      {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs},
      {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
      // By default gRPC sends only two pings while no data is sent, and would miss a client that
      // vanishes later.
      {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
      {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs},
      {GRPC_ARG_HTTP2_MAX_PING_STRIKES, kPingStrikes},
      {GRPC_ARG_MAX_CONNECTION_AGE_MS, ToMilliseconds(max_connection_age)},
      // Calls in flight may finish on a connection that has reached its maximum age.
      {GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, std::numeric_limits<int>::max()}};
  for (const auto& [name, value] : limits) builder.AddChannelArgument(name, value);
}

absl::Status CannotBind(const std::string& address, const absl::Status& why) {
  absl::string_view remedy = "Choose another address";
  if (absl::StrContains(why.message(), std::strerror(EADDRINUSE))) {
    remedy = "If another daemon serves this address, stop it or choose another address";
  } else if (absl::StrContains(why.message(), std::strerror(EADDRNOTAVAIL))) {
    remedy = "Choose an address of this machine";
  } else if (absl::StrContains(why.message(), std::strerror(ENOENT))) {
    remedy = "Create the directory of the socket, or choose another path";
  }
  return absl::UnavailableError(
      absl::StrCat("--listen: cannot bind ", address, " (", why.message(), "). ", remedy));
}

// Returns the connection limit of each address of --listen: --max-connections, or less if the
// process has too few file descriptors.
size_t MaxConnections(const Config& config) {
  size_t reserved = 512;  // files, devices, the metrics port
  for (const GroupSpec& group : config.groups) {
    if (!group.join.empty()) reserved += MostConnections(group.ranks);
  }
  const size_t all = RaiseDescriptorLimit();
  const size_t available = all > 2 * reserved ? all - reserved : all / 2;
  return std::min(static_cast<size_t>(config.max_connections),
                  std::max<size_t>(1, available / config.listen.size()));
}

Clock::duration ToChrono(absl::Duration duration) { return absl::ToChronoNanoseconds(duration); }

}  // namespace

absl::StatusOr<std::unique_ptr<Daemon>> Daemon::Start(
    const Config& config, std::vector<std::shared_ptr<Device>> devices) {
  std::unique_ptr<Daemon> daemon(new Daemon(config));
  CROUT_ASSIGN_OR_RETURN(daemon->components_, ServerComponents::Create(std::move(devices), config));
  daemon->standard_ = std::make_unique<StandardServices>(daemon->components_->core(), config.health,
                                                         config.reflection);
  try {
    CROUT_RETURN_IF_ERROR(daemon->Bind());
    daemon->housekeeper_ = StartThread([daemon = daemon.get()] { daemon->HousekeepingLoop(); });
  } catch (const std::system_error&) {
    // gRPC also failed to start threads. Its destructor would wait for them forever.
    (void)daemon.release();
    throw;
  }
  daemon->SetServing(true);
  LogStart(config, {daemon->addresses_, daemon->pages_->address()}, daemon->components_->core());
  return daemon;
}

absl::Status Daemon::Bind() {
  grpc::EnableDefaultHealthCheckService(false);  // standard_ implements it
  grpc::ServerBuilder builder;
  const int max_message = static_cast<int>(config_.limits.max_message_bytes);
  builder.SetMaxReceiveMessageSize(max_message);
  builder.SetMaxSendMessageSize(max_message);
  // Accept uncompressed messages only: the size of an inflated message is not known in advance.
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_DEFLATE, GRPC_COMPRESS_GZIP}) {
    builder.SetCompressionAlgorithmSupportStatus(algorithm, false);
  }
  LimitPeers(config_.max_connection_age, builder);
  builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
  // Larger frames reduce the parsing work for each byte of a matrix.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, kFrameBytes);
  grpc::ResourceQuota quota("croutd");
  quota.Resize(config_.receive_buffer_bytes);
  builder.SetResourceQuota(quota);
  // Two daemons on one port would share its calls, but each handle exists in one daemon only.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  std::vector<std::vector<std::unique_ptr<ConnectionListener::Acceptor>>> acceptors;
  CROUT_ASSIGN_OR_RETURN(tls_, TlsReloader::Create(config_.tls));
  ConnectionCalls& calls = components_->core().connections;
  calls.SetDisconnect([this](const std::string& peer) { Disconnect(peer); });
  const auto tcp_credentials = config_.tls.enabled()
                                   ? BoundedTls(ListenerCredentials(tls_->published()), calls)
                                   : BoundedInsecure(calls);
  max_connections_ = MaxConnections(config_);
  const auto add_acceptor = [&](std::shared_ptr<grpc::ServerCredentials> credentials) {
    acceptors.back().push_back(builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        std::move(credentials)));
  };
  for (const std::string& address : config_.listen) {
    CROUT_RETURN_IF_ERROR(BindTo(address));
    ConnectionListener& listener = *listeners_.back();
    acceptors.emplace_back();
    if (!IsUnix(address)) add_acceptor(tcp_credentials);
    for (size_t i = 0; IsUnix(address) && i <= kUsersOfSocket; ++i) {
      add_acceptor(BoundedInsecure(calls, [&listener, i] { return listener.UserOf(i); }));
    }
  }
  builder.RegisterService(&components_->service());
  builder.RegisterCallbackGenericService(standard_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr)
    return absl::InternalError(
        "gRPC cannot start the server. Set GRPC_VERBOSITY=debug to log the reason");
  CROUT_RETURN_IF_ERROR(ServePages());
  for (size_t i = 0; i < listeners_.size(); ++i) listeners_[i]->Start(std::move(acceptors[i]));
  for (const auto& listener : memory_listeners_) listener->Start();
  return absl::OkStatus();
}

absl::Status Daemon::BindTo(const std::string& address) {
  if (!IsUnix(address)) {
    auto listener = ConnectionListener::Bind(address, max_connections_);
    if (!listener.ok()) return CannotBind(address, listener.status());
    addresses_.push_back(WithPort(address, (*listener)->port()));
    listeners_.push_back(*std::move(listener));
    return absl::OkStatus();
  }
  const std::string path = address.substr(kUnix.size());
  const ScopedSocketUmask closed(config_.unix_access);
  auto listener = ConnectionListener::BindUnix(path, max_connections_);
  if (!listener.ok()) return CannotBind(address, listener.status());
  listeners_.push_back(*std::move(listener));
  addresses_.push_back(address);
  CROUT_RETURN_IF_ERROR(GrantAccess(path, config_.unix_access));
  return config_.max_shared_memory_bytes > 0 ? BindMemorySocket(path) : absl::OkStatus();
}

absl::Status Daemon::BindMemorySocket(const std::string& path) {
  const std::string memory_path = MemorySocketPath(path);
  SharedRegions& regions = components_->core().shared_regions;
  auto listener = MemoryListener::Bind(
      memory_path,
      [&regions](OwnedFile file, uint64_t size, uid_t user, MemoryListener::Done done) {
        regions.Add(std::move(file), size, user,
                    [done = std::move(done)](absl::StatusOr<SharedRegions::Region> region) mutable {
                      if (!region.ok()) return std::move(done)(region.status());
                      std::string id = (*region)->id();
                      std::move(done)(MemoryListener::Grant{std::move(id), *std::move(region)});
                    });
      });
  if (!listener.ok()) return CannotBind(memory_path, listener.status());
  memory_listeners_.push_back(*std::move(listener));
  return GrantAccess(memory_path, config_.unix_access);
}

void Daemon::Disconnect(const std::string& peer) {
  const auto from = ParseTcpPeer(peer);
  const auto closes = [&](const auto& listener) { return listener->Disconnect(*from); };
  if (!from || !std::any_of(listeners_.begin(), listeners_.end(), closes)) return;
  // Rate-limited: the client must reset --abandoned-calls calls for each line.
  Log(LogLevel::kWarn, "connection_closed",
      {{"peer", peer},
       {"reason", "the client resets calls before their header is read (--abandoned-calls)"}});
}

HttpAdmission Daemon::AdmitHttpCaller(Role role, const HttpCaller& caller) {
  ServerCore& core = components_->core();
  const auto identities = core.identities->current();
  const auto token = TokenOf(caller.authorization);
  Credentials credentials = token ? identities->Read(*token) : Credentials();
  credentials.certificate_names = caller.certificate_names;
  const absl::Status refused =
      FindIdentity(core, *identities, credentials,
                   {.role = role, .target = caller.path, .peer = caller.peer, .is_page = true})
          .status();
  if (refused.ok()) return {};
  constexpr unsigned kUnauthorized = 401;
  constexpr unsigned kForbidden = 403;
  const bool unknown_token = ReasonOf(refused) == kReasonUnknownToken;
  return {.status = absl::IsPermissionDenied(refused) ? kForbidden : kUnauthorized,
          .advice = std::string(refused.message()),
          .after = unknown_token ? kRefusalDelay : std::chrono::seconds(0)};
}

std::optional<HttpTls> Daemon::PagesTls() const {
  if (!config_.pages_tls) return std::nullopt;
  const TlsContents& files = tls_->contents();
  return HttpTls{.identity = files.identity,
                 .client_roots = files.roots,
                 .client_certificates_required =
                     config_.tls.client_certificates == ClientCertificates::kRequired};
}

absl::Status Daemon::ServePages() {
  auto pages = HttpServer::Start(
      config_.metrics_listen,
      OperationsPages(
          components_->core().metrics, [this] { return serving_.load(); },
          [this] {
            return RenderStatusPage(
                ViewStatus(components_->core(), components_->State(), serving_));
          },
          config_.page_access,
          [this](Role role, const HttpCaller& caller) { return AdmitHttpCaller(role, caller); }),
      HttpLimits(), PagesTls());
  if (!pages.ok()) {
    return absl::Status(pages.status().code(),
                        absl::StrCat("--metrics-listen: ", pages.status().message()));
  }
  pages_ = *std::move(pages);
  return absl::OkStatus();
}

Daemon::~Daemon() {
  {
    MutexLock lock(&mutex_);
    stopping_ = true;
    wake_.SignalAll();
  }
  if (housekeeper_.joinable()) housekeeper_.join();
  for (const auto& listener : listeners_) listener->Stop();
  for (const auto& listener : memory_listeners_) listener->Stop();
  if (server_ != nullptr) {
    server_->Shutdown(std::chrono::system_clock::now() + kCloseTimeout);
    server_->Wait();
  }
}

std::string Daemon::ReadyLine() const {
  return absl::StrCat("croutd ready listen=", absl::StrJoin(addresses_, ","),
                      " metrics=", pages_->address());
}

void Daemon::SetServing(bool serving) {
  serving_ = serving;
  standard_->SetServing(serving);
}

void Daemon::Housekeep() {
  components_->Housekeep();
  standard_->EnforceLimits(SteadyNow());
  if (config_.tls.enabled()) RefreshTls();
  CountConnections();
  if (!any_device_healthy()) SetServing(false);
}

void Daemon::CountConnections() {
  size_t open = 0;
  uint64_t refused = 0;
  for (const auto& listener : listeners_) {
    open += listener->open();
    refused += listener->refused();
  }
  Metrics& metrics = components_->core().metrics;
  metrics.SetConnections(open, max_connections_ * listeners_.size(), refused);
  uint64_t refused_memory = 0;
  for (const auto& listener : memory_listeners_) refused_memory += listener->refused();
  metrics.shared_memory().Set(components_->core().shared_regions.totals(), refused_memory);
}

void Daemon::RefreshTls() {
  const bool changed = tls_->Refresh();
  if (const auto tls = PagesTls(); changed && tls) {
    const absl::Status status = pages_->Renew(*tls);
    if (!status.ok()) Log(LogLevel::kError, "metrics_tls_refused", {{"reason", status.message()}});
  }
  Metrics& metrics = components_->core().metrics;
  const FileState state = tls_->state();
  metrics.SetWatchedFile(WatchedFile::kTls, state.read_time, state.refused);
  metrics.SetCertificateTime(tls_->begin(), tls_->end());
}

void Daemon::HousekeepingLoop() {
  MutexLock lock(&mutex_);
  while (!stopping_) {
    mutex_.Unlock();
    AbandonOnBadAlloc([this] { Housekeep(); });
    mutex_.Lock();
    if (!stopping_) wake_.WaitUntil(&mutex_, SteadyNow() + kHousekeepingPeriod);
  }
}

bool Daemon::Drain(const std::function<bool()>& cancel_now) {
  CallRegistry& calls = components_->core().calls;
  components_->core().draining = true;
  components_->StopAdoptions();
  const auto grace_end = SteadyNow() + ToChrono(config_.drain_grace);
  SetServing(false);
  Log(LogLevel::kInfo, "drain_started", {{"in_flight", calls.in_flight()}});
  constexpr auto kPoll = std::chrono::milliseconds(20);  // `cancel_now` polls for a signal
  while (SteadyNow() < grace_end && !cancel_now()) std::this_thread::sleep_for(kPoll);

  calls.Close();
  Log(LogLevel::kInfo, "new_calls_refused", {{"in_flight", calls.in_flight()}});
  if (calls.WaitUntilEmpty(SteadyNow() + ToChrono(config_.drain_limit), cancel_now)) return true;
  Log(LogLevel::kWarn, "open_calls_cancelled", {{"in_flight", calls.in_flight()}});
  calls.AbortAll(
      WithReason(absl::UnavailableError(
                     "the server stopped before this call finished. Retry on another server"),
                 kReasonDraining));
  // Housekeeping continues meanwhile and cuts off clients that do not respond.
  return calls.WaitUntilEmpty(SteadyNow() + kAbortTimeout, [] { return false; });
}

}  // namespace crout
