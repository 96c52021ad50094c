// SPDX-License-Identifier: Apache-2.0

#include "crout/client.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <system_error>
#include <thread>
#include <utility>

#include "absl/base/call_once.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "client/cpp/call_scope.h"
#include "client/cpp/credentials.h"
#include "client/cpp/field_names.h"
#include "client/cpp/lease_keeper.h"
#include "client/cpp/retry.h"
#include "client/cpp/wire.h"

namespace crout::client {
namespace {

using Stub = v1::FactorizationService::Stub;

grpc::ChannelArguments ChannelArguments(absl::Duration silence) {
  grpc::ChannelArguments arguments;
  // gRPC's default of 4 MiB is too small for long lists and for permutations.
  arguments.SetMaxReceiveMessageSize(64 << 20);
  arguments.SetMaxSendMessageSize(-1);
  // RunWithRetries retries calls; gRPC's own retries would buffer copies of the messages.
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Larger frames take less time to parse for each byte of a matrix.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_FRAME_SIZE, 4 << 20);
  // `silence` covers the time before a ping, for its answer, and for a new connection: 25 s, 15 s
  // and 20 s of the default of 60 s, and in proportion otherwise.
  const auto share = [&](int seconds) {
    const int64_t ms = absl::ToInt64Milliseconds(silence * (seconds / 60.0));
    return static_cast<int>(std::clamp<int64_t>(ms, 1, std::numeric_limits<int>::max()));
  };
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, share(25));
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, share(15));
  arguments.SetInt("grpc.http2.ping_timeout_ms", share(15));  // for gRPC 1.64 and newer
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, share(20));
  // Unlimited: a long computation needs many pings, and gRPC allows two by default.
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  return arguments;
}

// Works around a defect of gRPC before 1.61 (https://github.com/grpc/grpc/pull/35064): gRPC reads
// the errno of connect() after it has locked a Mutex. If errno has changed, gRPC takes a connection
// in progress for a failed one. Abseil changes errno once, when two threads first wait for a Mutex,
// because it then reads the frequency of the processor. This function makes two threads wait; call
// it before the first connection.
void ReadFrequency() {
  absl::Mutex mutex;
  bool waiting = false;
  bool done = false;
  bool never = false;
  std::thread first;
  try {
    first = std::thread([&] {
      absl::MutexLock lock(&mutex);
      waiting = true;
      mutex.Await(absl::Condition(&done));
    });
  } catch (const std::system_error&) {
    return;  // The first connection may then fail.
  }
  {
    absl::MutexLock lock(&mutex);
    mutex.Await(absl::Condition(&waiting));
    mutex.AwaitWithTimeout(absl::Condition(&never), absl::Microseconds(1));
    done = true;
  }
  first.join();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(ClientOptions options) {
  absl::StatusOr<ClientOptions> found = FindServer(std::move(options));
  if (!found.ok()) return found.status();
  options = *std::move(found);
  if (!options.tenant.empty()) {
    if (const absl::Status status = CheckTenant(options.tenant); !status.ok()) return status;
  }
  if (options.timeout < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("timeout is ", absl::FormatDuration(options.timeout),
                     ": give a positive duration, or 0 for no limit"));
  }
  if (options.silence < absl::Milliseconds(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("silence is ", absl::FormatDuration(options.silence), ": give at least 1 ms"));
  }
  if (options.retry.max_attempts < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_attempts is ", options.retry.max_attempts, ": give at least 1"));
  }
  const auto credentials = MakeCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  absl::StatusOr<std::string> token = LoadToken(options);
  if (!token.ok()) return token.status();
  options.token = *std::move(token);
  grpc::ChannelArguments arguments = ChannelArguments(options.silence);
  if (options.tls && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  static absl::once_flag frequency_read;
  absl::call_once(frequency_read, ReadFrequency);
  auto channel = grpc::CreateCustomChannel(options.server, *credentials, arguments);
  return std::unique_ptr<Client>(new Client(std::move(options), std::move(channel)));
}

Client::Client(ClientOptions options, std::shared_ptr<grpc::Channel> channel)
    : options_(std::move(options)),
      stub_(v1::FactorizationService::NewStub(channel)),
      generic_stub_(channel),
      leases_(std::make_unique<LeaseKeeper>(
          [this](const std::string& handle, absl::Duration lease, const CallOptions& call) {
            return Renew(handle, lease, call).status();
          })) {}

Client::~Client() = default;

absl::Status Client::RunWithRetries(RetryClass retry_class, const CallOptions& call,
                                    absl::FunctionRef<absl::Status(CallScope*)> attempt) {
  const absl::Duration timeout = call.timeout.value_or(options_.timeout);
  // The sum saturates at the end of absl::Time's range.
  const absl::Time deadline =
      timeout == absl::ZeroDuration() ? absl::InfiniteFuture() : absl::Now() + timeout;
  absl::Status status =
      client::RunWithRetries(options_.retry, retry_class, deadline, call.cancellation, [&] {
        CallScope scope(options_, call, deadline);
        return attempt(&scope);
      });
  return ExplainConnection(std::move(status), options_.tls.has_value());
}

template <class Request, class Response>
absl::StatusOr<Response> Client::Unary(grpc::Status (Stub::*method)(grpc::ClientContext*,
                                                                    const Request&, Response*),
                                       RetryClass retry_class, const Request& request,
                                       const CallOptions& call) {
  if (absl::Status texts = CheckTexts(request); !texts.ok()) return texts;
  Response response;
  const absl::Status status = RunWithRetries(retry_class, call, [&](CallScope* scope) {
    return ServerStatus((stub_.get()->*method)(scope->context(), request, &response));
  });
  if (!status.ok()) return status;
  return response;
}

absl::StatusOr<v1::ListFactorsResponse> Client::ListPage(const v1::ListFactorsRequest& request,
                                                         const CallOptions& call) {
  return Unary(&Stub::ListFactors, RetryClass::kIdempotent, request, call);
}

absl::Status Client::List(const std::string& name, absl::FunctionRef<bool(const v1::Factor&)> visit,
                          const CallOptions& call) {
  v1::ListFactorsRequest request;
  request.set_name(name);
  do {
    const auto page = ListPage(request, call);
    if (!page.ok()) return page.status();
    for (const v1::Factor& factor : page->factors()) {
      if (!visit(factor)) return absl::OkStatus();
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

absl::StatusOr<v1::Factor> Client::Describe(const std::string& handle, const CallOptions& call) {
  v1::DescribeFactorRequest request;
  request.set_handle(handle);
  auto response = Unary(&Stub::DescribeFactor, RetryClass::kIdempotent, request, call);
  if (!response.ok()) return response.status();
  return std::move(*response->mutable_factor());
}

absl::StatusOr<v1::IterationPage> Client::Iterations(const std::string& handle,
                                                     const CallOptions& call) {
  v1::DescribeFactorRequest request;
  request.set_handle(handle);
  v1::IterationPageRequest& next = *request.mutable_iterations();
  v1::IterationPage all;
  do {
    const auto response = Unary(&Stub::DescribeFactor, RetryClass::kIdempotent, request, call);
    if (!response.ok()) return response.status();
    all.MergeFrom(response->iterations());
    next.set_page_token(response->iterations().next_page_token());
  } while (!next.page_token().empty());
  all.clear_next_page_token();
  return all;
}

absl::StatusOr<absl::Time> Client::Renew(const std::string& handle, absl::Duration lease,
                                         const CallOptions& call) {
  v1::RenewLeaseRequest request;
  request.set_handle(handle);
  *request.mutable_lease() = ToProtoDuration(lease);
  const auto response = Unary(&Stub::RenewLease, RetryClass::kIdempotent, request, call);
  if (!response.ok()) return response.status();
  const auto& expiry = response->lease_expire_time();
  return absl::FromUnixSeconds(expiry.seconds()) + absl::Nanoseconds(expiry.nanos());
}

absl::Status Client::Release(const std::string& handle, const CallOptions& call) {
  v1::ReleaseFactorRequest request;
  request.set_handle(handle);
  return Unary(&Stub::ReleaseFactor, RetryClass::kRefusedOnly, request, call).status();
}

absl::StatusOr<v1::EstimateFactorizeResponse> Client::Estimate(
    const v1::EstimateFactorizeRequest& request, const CallOptions& call) {
  return Unary(&Stub::EstimateFactorize, RetryClass::kIdempotent, request, call);
}

absl::StatusOr<v1::GetServerInfoResponse> Client::ServerInfo(const CallOptions& call) {
  return Unary(&Stub::GetServerInfo, RetryClass::kIdempotent, v1::GetServerInfoRequest(), call);
}

}  // namespace crout::client
