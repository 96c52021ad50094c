// SPDX-License-Identifier: Apache-2.0

#include "server/rpc/standard_services.h"

#include <map>
#include <new>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "crout/v1/factorization_service.grpc.pb.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/descriptor.pb.h"
#include "grpc/reflection/v1alpha/reflection.pb.h"
#include "grpcpp/support/status.h"
#include "kernels/util/clock.h"
#include "kernels/util/status_macros.h"
#include "server/engine/error.h"
#include "server/rpc/caller.h"
#include "server/rpc/codec/status.h"
#include "server/rpc/codec/stream_message.h"

namespace crout {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using Clock = std::chrono::steady_clock;

constexpr char kHealth[] = "grpc.health.v1.Health";
constexpr char kReflection[] = "grpc.reflection.v1alpha.ServerReflection";
// Time for a client to read the final status of its call before the call is cancelled.
constexpr Clock::duration kErrorStatusTimeout = std::chrono::seconds(1);

using google::protobuf::DescriptorPool;
using google::protobuf::FieldDescriptor;
using google::protobuf::FileDescriptor;
using google::protobuf::FileDescriptorProto;
using grpc::reflection::v1alpha::ServerReflectionRequest;
using grpc::reflection::v1alpha::ServerReflectionResponse;

void Refuse(grpc::StatusCode code, const char* message, ServerReflectionResponse& response) {
  response.mutable_error_response()->set_error_code(code);
  response.mutable_error_response()->set_error_message(message);
}

// Adds the file and its transitive imports, each once.
void AddFiles(const FileDescriptor& file, std::set<const FileDescriptor*>& seen,
              ServerReflectionResponse& response) {
  if (!seen.insert(&file).second) return;
  FileDescriptorProto proto;
  file.CopyTo(&proto);
  response.mutable_file_descriptor_response()->add_file_descriptor_proto(proto.SerializeAsString());
  for (int i = 0; i < file.dependency_count(); ++i) AddFiles(*file.dependency(i), seen, response);
}

void AnswerFile(const FileDescriptor* file, ServerReflectionResponse& response) {
  if (file == nullptr)
    return Refuse(grpc::StatusCode::NOT_FOUND, "there is no such file", response);
  std::set<const FileDescriptor*> seen;
  AddFiles(*file, seen, response);
}

void AnswerExtensions(const std::string& type, ServerReflectionResponse& response) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  const auto* const message = pool.FindMessageTypeByName(type);
  if (message == nullptr) {
    return Refuse(grpc::StatusCode::NOT_FOUND, "there is no such type", response);
  }
  std::vector<const FieldDescriptor*> extensions;
  pool.FindAllExtensions(message, &extensions);
  auto* const numbers = response.mutable_all_extension_numbers_response();
  numbers->set_base_type_name(type);
  for (const FieldDescriptor* extension : extensions) {
    numbers->add_extension_number(extension->number());
  }
}

}  // namespace

// A health or reflection call. Deletes itself when gRPC is done with it. gRPC runs no reaction
// inside a Start* or Finish call, so these calls are safe with the mutex held.
class StandardServices::ServiceCall final : public grpc::ServerGenericBidiReactor {
 public:
  ServiceCall(StandardServices& services, Method method,
              grpc::GenericCallbackServerContext* context)
      : services_(services),
        method_(method),
        context_(context),
        name_(context->method().substr(1)),
        peer_(context->peer()),
        connection_entry_(services.core_.connections.Begin(*context)) {}

  void Begin(Access access) {
    MutexLock lock(&services_.mutex_);
    auto& calls = services_.calls_;
    if (calls.size() >= kMaxCalls) EndOldest(calls);
    calls.push_back(this);
    if (access == Access::kRoles) {
      absl::StatusOr<Caller> caller =
          AdmitWithoutTenant(services_.core_, *context_, CurrentAttempt());
      if (!caller.ok()) return Refuse(caller.status());
      caller_ = *std::move(caller);
    }
    StartRead(&request_);
  }

  // For callers that hold the same mutex through another expression.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK(services_.mutex_) {
    services_.mutex_.AssertHeld();
  }

  // Sends the current status to a Watch call if it has changed.
  void SendStatus() ABSL_EXCLUSIVE_LOCKS_REQUIRED(services_.mutex_) {
    if (!watched_ || writing_ || ended_) return;
    const auto status =
        services_.StatusOf(*watched_).value_or(HealthCheckResponse::SERVICE_UNKNOWN);
    if (status == sent_status_) return;
    sent_status_ = status;
    Write(ResponseOf(status));
  }

  void EnforceLimits(Clock::time_point now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(services_.mutex_) {
    if (ended_) {
      if (now - *ended_ >= kErrorStatusTimeout) context_->TryCancel();
    } else if (!refusal_.ok()) {
      if (now - refused_ >= kRefusalDelay) End(refusal_);
    } else {
      const absl::Status status = RecheckCaller(services_.core_, CurrentAttempt(), caller_);
      if (!status.ok()) End(status);
    }
  }

  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(services_.mutex_) {
    if (ended_) return;
    ended_ = SteadyNow();
    Finish(ToGrpcStatus(status, context_));
  }

  void OnReadDone(bool ok) override {
    MutexLock lock(&services_.mutex_);
    if (ended_) return;
    if (!ok) {
      return End(method_ == Method::kReflect
                     ? absl::OkStatus()
                     : absl::InvalidArgumentError("there is no request: send one message"));
    }
    connection_entry_.HeaderRead();
    try {
      const absl::Status status = Answer();
      if (!status.ok()) End(status);
    } catch (const std::bad_alloc&) {
      End(OutOfMemory());
    }
  }

  void OnWriteDone(bool ok) override {
    MutexLock lock(&services_.mutex_);
    writing_ = false;
    if (ended_) return;
    if (!ok) return End(absl::CancelledError("the client is gone"));
    if (method_ == Method::kReflect) return StartRead(&request_);
    SendStatus();
  }

  void OnCancel() override {
    MutexLock lock(&services_.mutex_);
    End(absl::CancelledError("the client cancelled the call"));
  }

  void OnDone() override {
    {
      MutexLock lock(&services_.mutex_);
      if (context_->IsCancelled()) connection_entry_.ClientLeft();
      services_.calls_.remove(this);
    }
    delete this;
  }

 private:
  // Ends the oldest call that has not ended yet.
  static void EndOldest(const std::list<ServiceCall*>& calls) {
    for (ServiceCall* const call : calls) {
      call->AssertHeld();
      if (call->ended_) continue;
      return call->End(
          absl::ResourceExhaustedError("the call was ended to admit a newer one: the limit of open "
                                       "calls is reached. Retry, and keep fewer calls open"));
    }
  }

  Attempt CurrentAttempt() const {
    return {.role = method_ == Method::kReflect ? Role::kSolve : Role::kMetrics,
            .target = name_,
            .peer = peer_};
  }

  // Ends the call with `status`. Delays the refusal of an unknown token until EnforceLimits(),
  // which slows down guessing.
  void Refuse(absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(services_.mutex_) {
    if (ReasonOf(status) != kReasonUnknownToken) return End(status);
    refusal_ = std::move(status);
    refused_ = SteadyNow();
  }

  absl::Status Answer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(services_.mutex_) {
    if (method_ == Method::kReflect) {
      ServerReflectionRequest request;
      CROUT_RETURN_IF_ERROR(ParseMessage(request_, &request));
      Write(Reflect(request, services_.names_));
      return absl::OkStatus();
    }
    HealthCheckRequest request;
    CROUT_RETURN_IF_ERROR(ParseMessage(request_, &request));
    if (method_ == Method::kWatch) {
      watched_ = request.service();
      SendStatus();
      return absl::OkStatus();
    }
    const auto status = services_.StatusOf(request.service());
    if (!status) return absl::NotFoundError("this server has no such service");
    reply_ = Serialize(ResponseOf(*status));
    ended_ = SteadyNow();
    StartWriteAndFinish(&reply_, grpc::WriteOptions(), grpc::Status::OK);
    return absl::OkStatus();
  }

  static HealthCheckResponse ResponseOf(HealthCheckResponse::ServingStatus status) {
    HealthCheckResponse response;
    response.set_status(status);
    return response;
  }

  void Write(const google::protobuf::Message& message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(services_.mutex_) {
    reply_ = Serialize(message);
    writing_ = true;
    StartWrite(&reply_);
  }

  StandardServices& services_;
  const Method method_;
  grpc::GenericCallbackServerContext* const context_;
  const std::string name_;
  const std::string peer_;
  // Guarded by services_.mutex_.
  ConnectionCalls::Entry
      connection_entry_;  // not charged: kMaxCalls is far below the pending limit
  Caller caller_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer reply_;
  bool writing_ = false;
  absl::Status refusal_;  // if not OK, the delayed final status
  Clock::time_point refused_;
  std::optional<std::string> watched_;  // service of a Watch call, once its request is read
  std::optional<HealthCheckResponse::ServingStatus> sent_status_;
  std::optional<Clock::time_point> ended_;
};

// A call of an unknown method or of a disabled service; ends with UNIMPLEMENTED.
class StandardServices::UnknownCall final : public grpc::ServerGenericBidiReactor {
 public:
  UnknownCall(StandardServices& services, grpc::GenericCallbackServerContext* context)
      : context_(context), connection_entry_(services.core_.connections.Begin(*context)) {
    Finish(grpc::Status(grpc::StatusCode::UNIMPLEMENTED, ""));
  }
  void OnDone() override {
    if (context_->IsCancelled()) connection_entry_.ClientLeft();
    delete this;
  }

 private:
  grpc::GenericCallbackServerContext* const context_;
  ConnectionCalls::Entry connection_entry_;
};

StandardServices::StandardServices(ServerCore& core, Access health, Access reflection)
    : core_(core), health_(health), reflection_(reflection) {
  names_.emplace_back(v1::FactorizationService::service_full_name());
  if (health != Access::kOff) names_.emplace_back(kHealth);
  names_.emplace_back(kReflection);
}

grpc::ServerGenericBidiReactor* StandardServices::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  static const std::map<std::string, Method, std::less<>> kMethods = {
      {absl::StrCat("/", kHealth, "/Check"), Method::kCheck},
      {absl::StrCat("/", kHealth, "/Watch"), Method::kWatch},
      {absl::StrCat("/", kReflection, "/ServerReflectionInfo"), Method::kReflect}};
  const auto method = kMethods.find(context->method());
  if (method == kMethods.end()) return new UnknownCall(*this, context);
  const Access access = method->second == Method::kReflect ? reflection_ : health_;
  if (access == Access::kOff) return new UnknownCall(*this, context);
  auto* const call = new ServiceCall(*this, method->second, context);
  call->Begin(access);
  return call;
}

std::optional<HealthCheckResponse::ServingStatus> StandardServices::StatusOf(
    std::string_view service) const {
  if (!service.empty() && service != v1::FactorizationService::service_full_name()) {
    return std::nullopt;
  }
  return serving_ ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

void StandardServices::SetServing(bool serving) {
  MutexLock lock(&mutex_);
  serving_ = serving;
  for (ServiceCall* const call : calls_) {
    call->AssertHeld();
    call->SendStatus();
  }
}

void StandardServices::EnforceLimits(Clock::time_point now) {
  MutexLock lock(&mutex_);
  for (ServiceCall* const call : calls_) {
    call->AssertHeld();
    call->EnforceLimits(now);
  }
}

ServerReflectionResponse Reflect(const ServerReflectionRequest& request,
                                 const std::vector<std::string>& services) {
  const DescriptorPool& pool = *DescriptorPool::generated_pool();
  ServerReflectionResponse response;
  response.set_valid_host(request.host());
  *response.mutable_original_request() = request;
  switch (request.message_request_case()) {
    case ServerReflectionRequest::kFileByFilename:
      AnswerFile(pool.FindFileByName(request.file_by_filename()), response);
      break;
    case ServerReflectionRequest::kFileContainingSymbol:
      AnswerFile(pool.FindFileContainingSymbol(request.file_containing_symbol()), response);
      break;
    case ServerReflectionRequest::kFileContainingExtension: {
      const auto& query = request.file_containing_extension();
      const auto* const type = pool.FindMessageTypeByName(query.containing_type());
      const FieldDescriptor* const extension =
          type == nullptr ? nullptr : pool.FindExtensionByNumber(type, query.extension_number());
      AnswerFile(extension == nullptr ? nullptr : extension->file(), response);
      break;
    }
    case ServerReflectionRequest::kAllExtensionNumbersOfType:
      AnswerExtensions(request.all_extension_numbers_of_type(), response);
      break;
    case ServerReflectionRequest::kListServices:
      for (const std::string& service : services) {
        response.mutable_list_services_response()->add_service()->set_name(service);
      }
      break;
    case ServerReflectionRequest::MESSAGE_REQUEST_NOT_SET:
      Refuse(grpc::StatusCode::INVALID_ARGUMENT,
             "the request is not set: set one of the message_request fields", response);
  }
  return response;
}

}  // namespace crout
