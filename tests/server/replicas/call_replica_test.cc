// SPDX-License-Identifier: Apache-2.0

// Tests the metadata that send a call to the replica that has its factor.
#include "server/replicas/call_replica.h"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/rpc/fixture.h"
#include "tests/support/fakes/memory_s3.h"
#include "tests/support/status_matchers.h"

namespace crout::testing::call_replica_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kOrder = 4;
constexpr auto kMetadata = CallReplica::kMetadata;

// The end of a call.
struct Ended {
  grpc::Status status;
  std::string replica;     // the metadata of the reply; empty if there is none
  bool has_delay = false;  // the status has a retry delay
};

Ended EndOf(const grpc::ClientContext& context, grpc::Status status) {
  const auto& trailers = context.GetServerTrailingMetadata();
  Ended ended;
  ended.status = std::move(status);
  // The details are serialized messages with the names of their types.
  ended.has_delay = ended.status.error_details().find("google.rpc.RetryInfo") != std::string::npos;
  if (const auto found = trailers.find(kMetadata); found != trailers.end()) {
    ended.replica.assign(found->second.data(), found->second.size());
  }
  return ended;
}

// A daemon on a fake device, and an in-process channel to it.
class Replica {
 public:
  Replica(std::shared_ptr<MemoryBucket> bucket, const std::string& name, Config config) {
    config.store_location = "s3://bucket";
    Start(config, [&](const Config&) -> absl::StatusOr<Storage> {
      // The leases never end, and the daemon reads them only at its start.
      auto store = SharedStore::Open(
          std::make_unique<MemoryS3>(std::move(bucket), std::make_shared<Connection>()),
          {.prefix = "", .name = name, .duration = std::chrono::hours(300)});
      if (!store.ok()) return store.status();
      Storage storage;
      storage.shared = store->get();
      storage.objects = *std::move(store);
      return storage;
    });
  }
  // A daemon without a store.
  explicit Replica(const Config& config) { Start(config, OpenStorage); }
  ~Replica() { server_->Shutdown(); }

  Ended Factorize(const v1::FactorizeHeader& header, const std::string& data, std::string* handle) {
    grpc::ClientContext context;
    auto stream = stub_->Factorize(&context);
    v1::FactorizeRequest request;
    *request.mutable_header() = header;
    request.set_data(data);
    stream->Write(request);
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *handle = response.factor().handle();
    }
    const grpc::Status status = stream->Finish();
    return EndOf(context, status);
  }
  // Sends the call with these values of the metadata.
  Ended Describe(const std::string& handle, const std::vector<std::string>& values,
                 const std::string& tenant = "default") {
    grpc::ClientContext context;
    context.AddMetadata("crout-tenant", tenant);
    for (const std::string& value : values) context.AddMetadata(kMetadata, value);
    v1::DescribeFactorRequest request;
    request.set_handle(handle);
    v1::DescribeFactorResponse response;
    const grpc::Status status = stub_->DescribeFactor(&context, request, &response);
    return EndOf(context, status);
  }
  FolderHomes* homes() { return components_->core().homes; }

 private:
  void Start(const Config& config, ServerComponents::StorageOpener open_storage) {
    std::vector<std::shared_ptr<Device>> devices;
    devices.push_back(std::make_unique<FakeDevice>());
    auto components = ServerComponents::Create(std::move(devices), config, open_storage);
    EXPECT_OK(components);
    components_ = *std::move(components);
    grpc::ServerBuilder builder;
    builder.RegisterService(&components_->service());
    server_ = builder.BuildAndStart();
    stub_ = v1::FactorizationService::NewStub(server_->InProcessChannel({}));
  }

  std::unique_ptr<ServerComponents> components_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::FactorizationService::Stub> stub_;
};

class CallReplicaTest : public RpcTest {
 protected:
  std::unique_ptr<Replica> Start(const std::string& name) {
    return std::make_unique<Replica>(bucket_, name, SmallConfig());
  }
  // Makes a factor and returns the end of the call.
  static Ended Factorize(Replica& replica, std::string* handle) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Dense(kOrder, kOrder);
    Ended ended = replica.Factorize(header, Bytes(Matrix(kOrder)), handle);
    EXPECT_TRUE(ended.status.ok()) << ended.status.error_message();
    return ended;
  }

  const std::shared_ptr<MemoryBucket> bucket_ = std::make_shared<MemoryBucket>();
};

void ExpectOtherReplica(const Ended& ended) {
  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::UNAVAILABLE)
      << ended.status.error_message();
  EXPECT_THAT(ended.status.error_details(), HasSubstr(std::string(kReasonOtherReplica)));
}

void ExpectUnknown(const Ended& ended) {
  EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::NOT_FOUND) << ended.status.error_message();
  EXPECT_THAT(ended.status.error_details(), Not(HasSubstr(std::string(kReasonOtherReplica))));
  EXPECT_EQ(ended.replica, "");
}

TEST_F(CallReplicaTest, RepliesNameTheHomeOfTheFactor) {
  const auto a = Start("a");
  std::string handle;
  const Ended made = Factorize(*a, &handle);
  const std::string home = made.replica;
  ASSERT_THAT(home, ::testing::StartsWith("a."));
  EXPECT_TRUE(IsFolderName(home.substr(2)));
  EXPECT_EQ(a->homes()->Find(home.substr(2)).place, FolderHomes::Place::kHere);
  for (const std::vector<std::string>& values : {std::vector<std::string>{}, {home}}) {
    const Ended described = a->Describe(handle, values);
    EXPECT_TRUE(described.status.ok()) << described.status.error_message();
    EXPECT_EQ(described.replica, home);
  }
  // The client has an old name of the daemon.
  EXPECT_EQ(a->Describe(handle, {"b." + home.substr(2)}).replica, home);
}

TEST_F(CallReplicaTest, OtherTenantsDoNotFindTheFactor) {
  const auto a = Start("a");
  std::string handle;
  const std::string home = Factorize(*a, &handle).replica;
  ExpectUnknown(a->Describe(handle, {home}, "another"));
}

TEST_F(CallReplicaTest, NamesTheOwnerOfTheFolder) {
  const auto a = Start("a");
  const auto b = Start("b");
  std::string handle;
  const std::string home = Factorize(*a, &handle).replica;
  const Ended ended = b->Describe(handle, {"b." + home.substr(2)});
  ExpectOtherReplica(ended);
  EXPECT_EQ(ended.replica, home);
  EXPECT_FALSE(ended.has_delay);
  // The proxy cannot reach the owner: the call names it, but arrives here.
  const Ended misled = b->Describe(handle, {home});
  ExpectOtherReplica(misled);
  EXPECT_EQ(misled.replica, home);
  EXPECT_TRUE(misled.has_delay);
  // Without the metadata, the daemon has no folder to look for.
  ExpectUnknown(b->Describe(handle, {}));
}

TEST_F(CallReplicaTest, ACallWaitsForTheLivingDaemonThatItNames) {
  const auto a = Start("a");
  const auto b = Start("b");
  std::string handle;
  std::string other;
  Factorize(*a, &handle);
  const std::string folder = Factorize(*b, &other).replica.substr(2);
  // The factor has no file: "a" has it, but has lost the folder to "b".
  const Ended misled = b->Describe(handle, {"a." + folder});
  ExpectOtherReplica(misled);
  EXPECT_EQ(misled.replica, "a." + folder);
  EXPECT_TRUE(misled.has_delay);
  ExpectUnknown(b->Describe(handle, {"b." + folder}));
  ExpectUnknown(b->Describe(handle, {"c." + folder}));
}

TEST_F(CallReplicaTest, AnAdoptionCausesADelay) {
  const auto a = Start("a");
  std::string handle;
  const std::string home = Factorize(*a, &handle).replica;
  const std::string unknown = Handle::Random().ToString();
  a->homes()->BeginAdoption(home.substr(2));
  const Ended moving = a->Describe(unknown, {home});
  ExpectOtherReplica(moving);
  EXPECT_TRUE(moving.has_delay);
  EXPECT_TRUE(a->Describe(handle, {home}).status.ok());
  a->homes()->EndAdoption(home.substr(2), /*adopted=*/true);
  ExpectUnknown(a->Describe(unknown, {home}));
}

TEST_F(CallReplicaTest, RefusesMalformedMetadata) {
  const auto a = Start("a");
  std::string handle;
  const std::string home = Factorize(*a, &handle).replica;
  const std::string folder = home.substr(2);
  const std::vector<std::vector<std::string>> malformed = {
      {""},
      {"a"},
      {"a."},
      {"." + folder},
      {folder},
      {"a.b." + folder},
      {"a_b." + folder},
      {"a." + folder + "a"},
      {"a.../leases/aaa"},
      {std::string(kMaxReplicaName + 1, 'a') + "." + folder},
      {std::string(4000, 'a')},
      {home, home},
  };
  for (const std::vector<std::string>& values : malformed) {
    const Ended ended = a->Describe(handle, values);
    EXPECT_EQ(ended.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << values[0];
    EXPECT_THAT(ended.status.error_message(), HasSubstr(kMetadata)) << values[0];
    EXPECT_EQ(ended.replica, "") << values[0];
  }
  const std::string longest = std::string(kMaxReplicaName, 'a') + "." + folder;
  EXPECT_TRUE(a->Describe(handle, {longest}).status.ok());
}

TEST_F(CallReplicaTest, ADaemonWithoutASharedStoreHasNoMetadata) {
  Replica alone(SmallConfig());
  std::string handle;
  EXPECT_EQ(Factorize(alone, &handle).replica, "");
  for (const std::string value : {"no folder", "b.aaaaaaaaaaaaa"}) {
    const Ended described = alone.Describe(handle, {value});
    EXPECT_TRUE(described.status.ok()) << described.status.error_message();
    EXPECT_EQ(described.replica, "");
    ExpectUnknown(alone.Describe(Handle::Random().ToString(), {value}));
  }
}

}  // namespace
}  // namespace crout::testing::call_replica_test
