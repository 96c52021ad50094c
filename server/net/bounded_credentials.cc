// SPDX-License-Identifier: Apache-2.0

#include "server/net/bounded_credentials.h"

#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/auth_metadata_processor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "kernels/util/mutex.h"

namespace crout {
namespace {

constexpr char kRefusal[] =
    "too many calls of this connection wait for the server: send fewer at a time, and try again";

// Serializes the numbering of connections: two calls of one connection may arrive at once on two
// threads.
Mutex& Numbering() {
  static auto* const mutex = new Mutex();
  return *mutex;
}

// Registers a new call; false if it must be refused. `find` returns the number of the connection as
// text, or nullopt if it has none yet. `add` stores the number.
template <class Find, class Add>
bool AdmitCall(ConnectionCalls& calls, const Find& find, const Add& add) {
  uint64_t connection = 0;
  {
    MutexLock lock(&Numbering());
    const std::optional<absl::string_view> number = find();
    if (!number) {
      connection = calls.NewConnection();
      add(absl::StrCat(connection));
    } else if (!absl::SimpleAtoi(*number, &connection)) {
      return false;
    }
  }
  return calls.Admit(connection);
}

class TlsHook final : public grpc::AuthMetadataProcessor {
 public:
  explicit TlsHook(ConnectionCalls& calls) : calls_(calls) {}
  bool IsBlocking() const override { return false; }
  grpc::Status Process(const InputMetadata& /*metadata*/, grpc::AuthContext* connection,
                       OutputMetadata* /*consumed*/, OutputMetadata* /*response*/) override {
    const auto find = [&]() -> std::optional<absl::string_view> {
      const auto found = connection->FindPropertyValues(kConnectionProperty);
      if (found.empty()) return std::nullopt;
      return absl::string_view(found.front().data(), found.front().size());
    };
    const auto add = [&](const std::string& number) {
      connection->AddProperty(kConnectionProperty, number);
    };
    if (AdmitCall(calls_, find, add)) return grpc::Status::OK;
    return {grpc::StatusCode::RESOURCE_EXHAUSTED, kRefusal};
  }

 private:
  ConnectionCalls& calls_;
};

// The state of Process().
struct InsecureHook {
  ConnectionCalls& calls;
  const std::function<std::string()> user;
};

// The equivalent of TlsHook in gRPC's C interface. `hook` is an InsecureHook.
void Process(void* hook, grpc_auth_context* connection, const grpc_metadata* /*metadata*/,
             size_t /*count*/, grpc_process_auth_metadata_done_cb done, void* call) {
  const InsecureHook& state = *static_cast<const InsecureHook*>(hook);
  const auto find = [&]() -> std::optional<absl::string_view> {
    auto found = grpc_auth_context_find_properties_by_name(connection, kConnectionProperty);
    const grpc_auth_property* const number = grpc_auth_property_iterator_next(&found);
    if (number == nullptr) return std::nullopt;
    return absl::string_view(number->value, number->value_length);
  };
  const auto add = [&](const std::string& number) {
    grpc_auth_context_add_cstring_property(connection, kConnectionProperty, number.c_str());
    if (!state.user) return;
    grpc_auth_context_add_cstring_property(connection, kUserProperty, state.user().c_str());
  };
  const bool admitted = AdmitCall(state.calls, find, add);
  done(call, nullptr, 0, nullptr, 0, admitted ? GRPC_STATUS_OK : GRPC_STATUS_RESOURCE_EXHAUSTED,
       admitted ? nullptr : kRefusal);
}

class InsecureCredentials final : public grpc::ServerCredentials {
 public:
  explicit InsecureCredentials(InsecureHook hook) : hook_(std::move(hook)) {}
  // Ignored: these credentials already have a processor.
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    grpc_server_credentials* const credentials = grpc_insecure_server_credentials_create();
    grpc_server_credentials_set_auth_metadata_processor(
        credentials, {.process = Process,
                      .destroy = [](void* hook) { delete static_cast<InsecureHook*>(hook); },
                      .state = new InsecureHook(hook_)});
    const int port = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return port;
  }

  const InsecureHook hook_;
};

}  // namespace

std::shared_ptr<grpc::ServerCredentials> BoundedTls(
    std::shared_ptr<grpc::ServerCredentials> credentials, ConnectionCalls& calls) {
  credentials->SetAuthMetadataProcessor(std::make_shared<TlsHook>(calls));
  return credentials;
}

std::shared_ptr<grpc::ServerCredentials> BoundedInsecure(ConnectionCalls& calls,
                                                         std::function<std::string()> user) {
  return std::make_shared<InsecureCredentials>(InsecureHook{calls, std::move(user)});
}

}  // namespace crout
