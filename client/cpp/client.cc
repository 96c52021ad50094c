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
#include "client/cpp/connection.h"
#include "client/cpp/convert.h"
#include "client/cpp/credentials.h"
#include "client/cpp/lease_keeper.h"
#include "client/cpp/payload.h"

namespace crout {
inline namespace api {
namespace {

using internal::CheckPlace;
using internal::Connection;
using internal::Fill;
using internal::LeaseKeeper;
using internal::Read;
using internal::RequestOf;
using internal::RetryClass;
using Stub = Connection::Stub;

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
  // The default lets two minutes pass between attempts to reach a server that restarts.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
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
  const auto credentials = internal::MakeCredentials(options.tls);
  if (!credentials.ok()) return credentials.status();
  absl::StatusOr<std::string> token = internal::LoadToken(options);
  if (!token.ok()) return token.status();
  options.token = *std::move(token);
  grpc::ChannelArguments arguments = ChannelArguments(options.silence);
  if (options.tls && !options.tls->server_name.empty()) {
    arguments.SetSslTargetNameOverride(options.tls->server_name);
  }
  static absl::once_flag frequency_read;
  absl::call_once(frequency_read, ReadFrequency);
  auto channel = grpc::CreateCustomChannel(options.server, *credentials, arguments);
  return std::unique_ptr<Client>(
      new Client(std::make_unique<Connection>(std::move(options), channel)));
}

Client::Client(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)),
      leases_(std::make_unique<LeaseKeeper>(
          [this](const std::string& handle, absl::Duration lease, const CallOptions& call) {
            return Renew(handle, lease, call).status();
          })) {}

Client::~Client() = default;

absl::StatusOr<FactorDescription> Client::Factor(const MatrixSource& matrix,
                                                 const FactorOptions& options,
                                                 const CacheOptions& cache,
                                                 const CallOptions& call) {
  v1::FactorizeRequest first;
  v1::FactorizeHeader& header = *first.mutable_header();
  *header.mutable_matrix() = matrix.payload().spec;
  Fill(options, header.mutable_options());
  Fill(cache, header.mutable_cache());
  return connection_->FactorStream<v1::FactorizeResponse>(
      RequestOf("Factorize", first, {{v1::FactorizeRequest::kDataFieldNumber, &matrix}}),
      cache.request_id.empty() ? RetryClass::kRefusedOnly : RetryClass::kIdempotent, call);
}

absl::StatusOr<FactorDescription> Client::Refactor(const std::string& handle,
                                                   const MatrixSource& matrix,
                                                   const RefactorOptions& options,
                                                   const CallOptions& call) {
  v1::RefactorizeRequest first;
  v1::RefactorizeHeader& header = *first.mutable_header();
  header.set_handle(handle);
  *header.mutable_matrix() = matrix.payload().spec;
  Fill(options, &header);
  return connection_->FactorStream<v1::RefactorizeResponse>(
      RequestOf("Refactorize", first, {{v1::RefactorizeRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kRefusedOnly, call);
}

absl::StatusOr<SolveResult> Client::Solve(const std::string& handle, const MatrixSource& rhs,
                                          const SolveOptions& options, MatrixSink* x,
                                          const CallOptions& call) {
  v1::SolveRequest first;
  v1::SolveHeader& header = *first.mutable_header();
  header.set_handle(handle);
  *header.mutable_rhs() = rhs.payload().spec;
  Fill(options, header.mutable_options());
  return connection_->MatrixStream<v1::SolveResponse, SolveResult>(
      RequestOf("Solve", first, {{v1::SolveRequest::kDataFieldNumber, &rhs}}),
      RetryClass::kIdempotent, nullptr, x, call);
}

absl::StatusOr<SolveResult> Client::FactorAndSolve(const MatrixSource& matrix,
                                                   const MatrixSource& rhs,
                                                   const FactorAndSolveOptions& options,
                                                   FactorDescription* factor, MatrixSink* x,
                                                   const CallOptions& call) {
  if (absl::Status place = CheckPlace(factor, "factor"); !place.ok()) return place;
  v1::FactorizeAndSolveRequest first;
  v1::FactorizeAndSolveHeader& header = *first.mutable_header();
  *header.mutable_matrix() = matrix.payload().spec;
  v1::MatrixSpec& sides = *header.mutable_rhs();
  sides = rhs.payload().spec;
  // A BatchSource without right-hand sides has no type: use the type of the matrices.
  if (sides.has_batch_rhs() && sides.batch_rhs().systems() == 0) {
    sides.mutable_batch_rhs()->set_dtype(header.matrix().batch().dtype());
  }
  Fill(options, &header);
  return connection_->MatrixStream<v1::FactorizeAndSolveResponse, SolveResult>(
      RequestOf("FactorizeAndSolve", first,
                {{v1::FactorizeAndSolveRequest::kDataFieldNumber, &matrix},
                 {v1::FactorizeAndSolveRequest::kRhsDataFieldNumber, &rhs}}),
      // A cached factor would be cached twice by a second attempt.
      options.cache ? RetryClass::kRefusedOnly : RetryClass::kIdempotent, factor, x, call);
}

absl::StatusOr<ComplementResult> Client::Schur(const MatrixSource& matrix,
                                               const SchurOptions& options,
                                               FactorDescription* factor, MatrixSink* s,
                                               const CallOptions& call) {
  if (absl::Status place = CheckPlace(factor, "factor"); !place.ok()) return place;
  v1::ComputeSchurComplementRequest first;
  *first.mutable_header()->mutable_matrix() = matrix.payload().spec;
  Fill(options, first.mutable_header());
  return connection_->MatrixStream<v1::ComputeSchurComplementResponse, ComplementResult>(
      RequestOf("ComputeSchurComplement", first,
                {{v1::ComputeSchurComplementRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kRefusedOnly, factor, s, call);
}

absl::StatusOr<EchelonFormResult> Client::Rref(const MatrixSource& matrix,
                                               const RrefOptions& options, MatrixSink* r,
                                               const CallOptions& call) {
  v1::ReduceToEchelonFormRequest first;
  *first.mutable_header()->mutable_matrix() = matrix.payload().spec;
  Fill(options, first.mutable_header());
  return connection_->MatrixStream<v1::ReduceToEchelonFormResponse, EchelonFormResult>(
      RequestOf("ReduceToEchelonForm", first,
                {{v1::ReduceToEchelonFormRequest::kDataFieldNumber, &matrix}}),
      RetryClass::kIdempotent, nullptr, r, call);
}

absl::Status Client::List(const std::string& name,
                          absl::FunctionRef<bool(const FactorDescription&)> visit,
                          const CallOptions& call) {
  v1::ListFactorsRequest request;
  request.set_name(name);
  do {
    const auto page =
        connection_->Unary(&Stub::ListFactors, RetryClass::kIdempotent, request, call);
    if (!page.ok()) return page.status();
    for (const v1::Factor& factor : page->factors()) {
      if (!visit(Read<FactorDescription>(factor))) return absl::OkStatus();
    }
    request.set_page_token(page->next_page_token());
  } while (!request.page_token().empty());
  return absl::OkStatus();
}

absl::StatusOr<FactorDescription> Client::Describe(const std::string& handle,
                                                   const CallOptions& call) {
  v1::DescribeFactorRequest request;
  request.set_handle(handle);
  const auto response =
      connection_->Unary(&Stub::DescribeFactor, RetryClass::kIdempotent, request, call);
  if (!response.ok()) return response.status();
  return Read<FactorDescription>(response->factor());
}

absl::StatusOr<IterationPage> Client::Iterations(const std::string& handle,
                                                 const CallOptions& call) {
  v1::DescribeFactorRequest request;
  request.set_handle(handle);
  v1::IterationPageRequest& next = *request.mutable_iterations();
  v1::IterationPage all;
  do {
    const auto response =
        connection_->Unary(&Stub::DescribeFactor, RetryClass::kIdempotent, request, call);
    if (!response.ok()) return response.status();
    all.MergeFrom(response->iterations());
    next.set_page_token(response->iterations().next_page_token());
  } while (!next.page_token().empty());
  return Read<IterationPage>(all);
}

absl::StatusOr<absl::Time> Client::Renew(const std::string& handle, absl::Duration lease,
                                         const CallOptions& call) {
  v1::RenewLeaseRequest request;
  request.set_handle(handle);
  *request.mutable_lease() = internal::ToProto(lease);
  const auto response =
      connection_->Unary(&Stub::RenewLease, RetryClass::kIdempotent, request, call);
  if (!response.ok()) return response.status();
  return internal::FromProto(response->lease_expire_time());
}

absl::Status Client::Pin(const std::string& handle, bool pin, const CallOptions& call) {
  v1::RenewLeaseRequest request;
  request.set_handle(handle);
  request.set_pin(pin);
  return connection_->Unary(&Stub::RenewLease, RetryClass::kIdempotent, request, call).status();
}

absl::Status Client::Release(const std::string& handle, const CallOptions& call) {
  v1::ReleaseFactorRequest request;
  request.set_handle(handle);
  return connection_->Unary(&Stub::ReleaseFactor, RetryClass::kRefusedOnly, request, call).status();
}

absl::StatusOr<crout::Estimate> Client::Estimate(const EstimateRequest& request,
                                                 const CallOptions& call) {
  v1::EstimateFactorizeRequest sent;
  Fill(request, &sent);
  const auto response =
      connection_->Unary(&Stub::EstimateFactorize, RetryClass::kIdempotent, sent, call);
  if (!response.ok()) return response.status();
  return Read<crout::Estimate>(*response);
}

absl::StatusOr<crout::ServerInfo> Client::ServerInfo(const CallOptions& call) {
  const auto response = connection_->Unary(&Stub::GetServerInfo, RetryClass::kIdempotent,
                                           v1::GetServerInfoRequest(), call);
  if (!response.ok()) return response.status();
  return Read<crout::ServerInfo>(*response);
}

std::shared_ptr<std::byte[]> Client::AllocateBytes(size_t bytes) {
  return connection_->shared_memory()->Allocate(bytes);
}

bool IsHandle(const std::string& text) {
  return text.size() == 26 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz234567") == std::string::npos;
}

}  // namespace api
}  // namespace crout
