// SPDX-License-Identifier: Apache-2.0

#include "tests/server/rpc/fixture.h"

#include <cmath>
#include <cstring>
#include <ostream>
#include <utility>

#include "kernels/host/device/host_device.h"
#include "server/devices.h"

namespace crout::testing {

std::ostream& operator<<(std::ostream& out, const Holdings& h) {
  return out << "{device_reserved " << h.device_reserved << ", host_reserved " << h.host_reserved
             << ", device_bytes " << h.device_bytes << ", uploads " << h.uploads
             << ", streams_busy " << h.streams_busy << ", queue_depth " << h.queue_depth
             << ", calls " << h.calls << ", factors " << h.factors << "}";
}

Config RpcTest::SmallConfig() {
  Config config;
  config.host_threads = 1;
  config.pool.device_budget_bytes = size_t{48} << 20;
  config.pool.host_budget_bytes = size_t{64} << 20;
  config.pool.scheduler.streams = 1;
  config.pool.scheduler.queue_capacity = 2;
  config.limits.queue_capacity = 2;
  config.limits.max_n = 4096;
  config.DisableBatching();
  return config;
}

void RpcTest::StartServer(const FakeDeviceOptions& device, const Config& config) {
  StartServers({device}, config);
}

void RpcTest::StartServers(const std::vector<FakeDeviceOptions>& options, const Config& config) {
  std::vector<std::shared_ptr<Device>> devices;
  for (const FakeDeviceOptions& each : options) {
    auto fake = std::make_unique<FakeDevice>(each);
    devices_.push_back(fake.get());
    devices.push_back(std::move(fake));
  }
  if (const size_t bytes = config.pool.out_of_core_bytes; bytes > 0) {
    const absl::Status added = AddOutOfCoreDevices(bytes, host::MakeExecutor(1), devices);
    ASSERT_TRUE(added.ok()) << added;
  }
  auto components = ServerComponents::Create(std::move(devices), config);
  ASSERT_TRUE(components.ok()) << components.status();
  components_ = *std::move(components);
  grpc::ServerBuilder builder;
  builder.RegisterService(&components_->service());
  server_ = builder.BuildAndStart();
  stub_ = v1::FactorizationService::NewStub(server_->InProcessChannel({}));
}

void RpcTest::TearDown() {
  for (FakeDevice* device : devices_) device->Recover();
  if (server_ != nullptr) server_->Shutdown();
}

Holdings RpcTest::Held() const {
  ServerCore& core = components_->core();
  const DeviceSlot& slot = *core.engine.devices.slots()[0];
  const DeviceScheduler::Load load = slot.scheduler->load();
  return {.device_reserved = slot.budget->reserved(),
          .host_reserved = core.engine.devices.host_budget().reserved(),
          .device_bytes = devices_[0]->counting_memory().live_bytes(),
          .uploads = devices_[0]->live_uploaders(),
          .streams_busy = load.streams_busy,
          .queue_depth = load.queue_depth,
          .calls = core.calls.in_flight(),
          .factors = core.engine.cache.size()};
}

void RpcTest::WaitUntil(const std::function<bool()>& condition, const std::string& what) {
  ASSERT_TRUE(Eventually(condition)) << "still not: " << what;
}

Holdings RpcTest::Idle() {
  const auto idle = [this] {
    const Holdings held = Held();
    return held.calls == 0 && held.streams_busy == 0;
  };
  WaitUntil(idle, "idle");
  return Held();
}

void RpcTest::ExpectHeldSoon(const Holdings& expected) {
  Eventually([&] { return Held() == expected; });
  EXPECT_EQ(Held(), expected);
}

void RpcTest::PassTime(absl::Duration duration) {
  components_->Housekeep();  // Finish pending reactions before the time passes.
  failpoints_.Advance(duration);
  components_->Housekeep();
}

std::vector<double> RpcTest::Matrix(int64_t n, int seed) {
  std::vector<double> a(n * n);
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      a[i + j * n] = std::sin(static_cast<double>(1 + i * 7 + j * 13 + seed * 31));
    }
    a[j + j * n] += static_cast<double>(n);
  }
  return a;
}

v1::MatrixSpec RpcTest::Dense(int64_t rows, int64_t cols) {
  v1::MatrixSpec spec;
  spec.mutable_dense()->set_dtype(v1::DTYPE_FLOAT64);
  spec.mutable_dense()->set_rows(rows);
  spec.mutable_dense()->set_cols(cols);
  return spec;
}

v1::MatrixSpec RpcTest::Text(v1::Dtype dtype) {
  v1::MatrixSpec spec;
  spec.mutable_matrix_market()->set_dtype(dtype);
  return spec;
}

std::string RpcTest::Bytes(const std::vector<double>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(double)};
}

grpc::Status RpcTest::Factorize(int64_t n, v1::Factor* factor, int seed) {
  v1::FactorizeHeader header;
  *header.mutable_matrix() = Dense(n, n);
  return Factorize(header, Bytes(Matrix(n, seed)), factor);
}

grpc::Status RpcTest::Factorize(const v1::FactorizeHeader& header, const std::string& data,
                                v1::Factor* factor) {
  grpc::ClientContext context;
  auto stream = stub_->Factorize(&context);
  v1::FactorizeRequest request;
  *request.mutable_header() = header;
  request.set_data(data);
  stream->Write(request);
  stream->WritesDone();
  v1::FactorizeResponse response;
  while (stream->Read(&response)) {
    if (response.has_factor()) *factor = response.factor();
  }
  return stream->Finish();
}

grpc::Status RpcTest::Solve(const std::string& handle, const std::vector<double>& b,
                            Solved* solved) {
  grpc::ClientContext context;
  auto stream = stub_->Solve(&context);
  v1::SolveRequest request;
  request.mutable_header()->set_handle(handle);
  *request.mutable_header()->mutable_rhs() = Dense(static_cast<int64_t>(b.size()), 1);
  request.set_data(Bytes(b));
  stream->Write(request);
  stream->WritesDone();
  std::string data;
  v1::SolveResponse response;
  while (stream->Read(&response)) {
    data += response.data();
    if (response.has_result()) solved->result = response.result();
  }
  solved->x.resize(data.size() / sizeof(double));
  if (!data.empty()) std::memcpy(solved->x.data(), data.data(), data.size());
  return stream->Finish();
}

RpcTest::SolvedAtOnce RpcTest::FactorizeAndSolve(const v1::FactorizeAndSolveHeader& header,
                                                 const std::string& a, const std::string& b) {
  grpc::ClientContext context;
  auto stream = stub().FactorizeAndSolve(&context);
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header() = header;
  request.set_data(a);
  request.set_rhs_data(b);
  stream->Write(request);
  stream->WritesDone();
  SolvedAtOnce solved;
  v1::FactorizeAndSolveResponse response;
  while (stream->Read(&response)) {
    if (response.has_factor()) solved.factor = response.factor();
    if (response.has_header()) solved.header = response.header();
    if (response.has_result()) solved.result = response.result();
    solved.data += response.data();
  }
  solved.status = stream->Finish();
  return solved;
}

}  // namespace crout::testing
