// SPDX-License-Identifier: Apache-2.0

// Tests payloads and solutions in memory of a device, which the server allocates for a client. The
// memory of a fake device is a memfd.
#include <sys/mman.h>

#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/shared_memory/shared_memory_fixture.h"
#include "tests/support/status_matchers.h"

namespace crout::shared_memory_test {
namespace {

using testing::FailsWith;
using testing::FakeDeviceOptions;

constexpr size_t kUnit = Device::kShareableUnit;
const std::string kGpu("0123456789abcdef");
const std::string kOtherGpu("fedcba9876543210");

// The client's mapping of device memory.
class Mapping {
 public:
  explicit Mapping(SharedRegions::DeviceRegion made) : region_(std::move(made.region)) {
    void* const start =
        mmap(nullptr, size(), PROT_READ | PROT_WRITE, MAP_SHARED, made.memory.get(), /*offset=*/0);
    EXPECT_NE(start, MAP_FAILED);
    start_ = static_cast<char*>(start);
  }
  ~Mapping() { munmap(start_, size()); }
  Mapping(const Mapping&) = delete;  // It owns a mapping.
  Mapping& operator=(const Mapping&) = delete;

  size_t size() const { return region_->bytes().size(); }
  const SharedRegions::Region& region() const { return region_; }
  void Write(const std::string& data, size_t offset = 0) {
    std::memcpy(start_ + offset, data.data(), data.size());
  }
  std::string Read(size_t offset, size_t size) const { return {start_ + offset, size}; }

 private:
  const SharedRegions::Region region_;
  char* start_ = nullptr;
};

class DeviceMemoryTest : public SharedMemoryTest {
 protected:
  static Config DeviceConfig() {
    Config config = SmallConfig();
    config.max_shared_device_memory_bytes = 16 * kUnit;
    return config;
  }
  void StartDevices(const std::vector<FakeDeviceOptions>& devices = {{.uuid = kGpu}}) {
    StartServers(devices, DeviceConfig());
  }
  absl::StatusOr<SharedRegions::DeviceRegion> Allocate(uint64_t size, const std::string& gpu = kGpu,
                                                       uid_t user = kUser) {
    std::promise<absl::StatusOr<SharedRegions::DeviceRegion>> done;
    core().shared_regions.Allocate(gpu, size, user,
                                   [&done](absl::StatusOr<SharedRegions::DeviceRegion> made) {
                                     done.set_value(std::move(made));
                                   });
    return done.get_future().get();
  }
  std::unique_ptr<Mapping> Map(uint64_t size, const std::string& gpu = kGpu) {
    auto made = Allocate(size, gpu);
    EXPECT_OK(made);
    return made.ok() ? std::make_unique<Mapping>(*std::move(made)) : nullptr;
  }
  // Solves with b from the start of the memory, and with X at `at`. Returns the bytes of X in the
  // memory, or "" if the server sent messages.
  std::string SolveInto(const v1::Factor& factor, const Mapping& memory, size_t at) {
    grpc::ClientContext context;
    auto stream = stub().Solve(&context);
    v1::SolveRequest request;
    request.mutable_header()->set_handle(factor.handle());
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    constexpr size_t kSize = kN * sizeof(double);
    *request.mutable_shared_data() = Range(memory.region(), 0, kSize);
    *request.mutable_shared_reply() = Range(memory.region(), at, kSize);
    EXPECT_TRUE(stream->Write(request));
    stream->WritesDone();
    v1::SolveResponse response;
    bool shared = false;
    while (stream->Read(&response)) shared |= response.shared_bytes() == kSize;
    const grpc::Status status = stream->Finish();
    EXPECT_TRUE(status.ok()) << status.error_message();
    return shared ? memory.Read(at, kSize) : "";
  }
};

TEST_F(DeviceMemoryTest, ChargesTheBudgetOfTheDeviceUntilTheLastUse) {
  StartDevices();
  auto made = Allocate(kUnit + 1);
  ASSERT_OK(made);
  EXPECT_EQ(made->region->bytes().size(), 2 * kUnit);
  EXPECT_EQ(made->region->device(), &device());
  EXPECT_GE(made->memory.get(), 0);
  EXPECT_EQ(Held().device_reserved, 2 * kUnit);
  EXPECT_EQ(Held().host_reserved, 0);
  EXPECT_EQ(core().shared_regions.totals().device_bytes, 2 * kUnit);
  EXPECT_EQ(core().shared_regions.totals().bytes, 0);
  made->region = nullptr;
  WaitUntil([&] { return core().shared_regions.totals().regions == 0; }, "released");
  EXPECT_EQ(Held().device_reserved, 0);
  EXPECT_EQ(device().live_shareable_memories(), 0);
}

TEST_F(DeviceMemoryTest, RefusesOtherGpusAndSizes) {
  StartDevices({{.name = "cuda:0", .uuid = kGpu}, {.name = "cuda:1"}});
  EXPECT_THAT(Allocate(kUnit, kOtherGpu),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "its GPUs: cuda:0 (GPU-30313233-3435-3637-3839-616263646566)"));
  for (const uint64_t size : {uint64_t{0}, uint64_t{16 * kUnit + 1}, ~uint64_t{0}}) {
    EXPECT_THAT(Allocate(size),
                FailsWith(absl::StatusCode::kInvalidArgument, "--max-shared-device-memory"));
  }
  EXPECT_THAT(Allocate(4 * kUnit + 1),
              FailsWith(absl::StatusCode::kResourceExhausted, "a quarter"));
  auto quarter = Allocate(4 * kUnit);
  ASSERT_OK(quarter);
  EXPECT_THAT(Allocate(1), FailsWith(absl::StatusCode::kResourceExhausted, "a quarter"));
  EXPECT_OK(Allocate(1, kGpu, kUser + 1));
}

TEST_F(DeviceMemoryTest, RefusesMoreThanTheBudgetOfTheDevice) {
  Config config = SmallConfig();
  config.max_shared_device_memory_bytes = size_t{4} << 30;
  StartServers({{.uuid = kGpu}}, config);
  EXPECT_EQ(Allocate(size_t{1} << 30).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(core().shared_regions.totals().regions, 0);
  EXPECT_EQ(Held().device_reserved, 0);
}

TEST_F(DeviceMemoryTest, IsOffByDefault) {
  Start({.uuid = kGpu});
  EXPECT_THAT(Allocate(kUnit),
              FailsWith(absl::StatusCode::kInvalidArgument, "--max-shared-device-memory"));
}

TEST_F(DeviceMemoryTest, ServersWithoutGpusRefuse) {
  StartDevices({{.kind = DeviceKind::kHost, .name = "host"}});
  EXPECT_THAT(Allocate(kUnit), FailsWith(absl::StatusCode::kInvalidArgument,
                                         "its GPUs: none. Send arrays in host memory"));
}

TEST_F(DeviceMemoryTest, FactorsAndSolvesOnTheDevice) {
  StartDevices();
  const auto memory = Map(kUnit);
  ASSERT_NE(memory, nullptr);
  memory->Write(Bytes(Matrix(kN)), 4096);
  v1::Factor factor;
  ASSERT_TRUE(
      FactorizeRange(Dense(kN, kN), Range(memory->region(), 4096, kMatrixBytes), &factor).ok());
  ExpectSolves(factor);
  EXPECT_EQ(device().direct_bytes(), kMatrixBytes);

  const std::vector<double> b(kN, 1.0);
  Solved expected;
  ASSERT_TRUE(Solve(factor.handle(), b, &expected).ok());
  memory->Write(Bytes(b));
  EXPECT_EQ(SolveInto(factor, *memory, 8192), Bytes(expected.x));
  // Nothing passed through the host.
  EXPECT_EQ(device().direct_bytes(), kMatrixBytes + kN * sizeof(double));
  EXPECT_EQ(device().shareable_copied_bytes(), 0);
  EXPECT_EQ(Sample("crout_shared_memory_sent_bytes_total"), kN * sizeof(double));
}

TEST_F(DeviceMemoryTest, PlacesAJobWhereItsMatrixIs) {
  StartDevices({{.name = "cuda:0", .uuid = kGpu}, {.name = "cuda:1", .uuid = kOtherGpu}});
  const auto memory = Map(kUnit, kOtherGpu);
  ASSERT_NE(memory, nullptr);
  memory->Write(Bytes(Matrix(kN)));
  for (int i = 0; i < 3; ++i) {
    v1::Factor factor;
    ASSERT_TRUE(
        FactorizeRange(Dense(kN, kN), Range(memory->region(), 0, kMatrixBytes), &factor).ok());
    EXPECT_EQ(factor.device(), "cuda:1");
  }
}

TEST_F(DeviceMemoryTest, CopiesThroughTheHostToAnotherDevice) {
  StartDevices({{.name = "cuda:0", .uuid = kGpu}, {.name = "cuda:1", .uuid = kOtherGpu}});
  const auto memory = Map(kUnit, kOtherGpu);
  ASSERT_NE(memory, nullptr);
  memory->Write(Bytes(Matrix(kN)));
  v1::Factor factor;
  const grpc::Status status = FactorizeWith(
      Dense(kN, kN),
      [&](int i, v1::FactorizeRequest& request) {
        request.mutable_header()->mutable_options()->set_device("cuda:0");
        *request.mutable_shared_data() = Range(memory->region(), 0, kMatrixBytes);
        return i == 0;
      },
      &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(factor.device(), "cuda:0");
  ExpectSolves(factor);
  EXPECT_EQ(device(1).shareable_copied_bytes(), kMatrixBytes);

  const std::vector<double> b(kN, 1.0);
  Solved expected;
  ASSERT_TRUE(Solve(factor.handle(), b, &expected).ok());
  memory->Write(Bytes(b));
  EXPECT_EQ(SolveInto(factor, *memory, 8192), Bytes(expected.x));
}

TEST_F(DeviceMemoryTest, ParsesATextOnTheDevice) {
  StartDevices();
  const auto memory = Map(kUnit);
  ASSERT_NE(memory, nullptr);
  const std::string text = "%%MatrixMarket matrix coordinate real general\n2 2 2\n1 1 2\n2 2 4\n";
  memory->Write(text);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Text(), Range(memory->region(), 0, text.size()), &factor).ok());
  EXPECT_EQ(factor.n(), 2);
}

TEST_F(DeviceMemoryTest, KeepsTheMemoryWhileACallUsesIt) {
  StartDevices();
  auto memory = Map(kUnit);
  ASSERT_NE(memory, nullptr);
  memory->Write(Bytes(Matrix(kN)));
  device().copy_gate().Close();
  auto call = std::async(std::launch::async, [&, range = Range(memory->region(), 0, kMatrixBytes)] {
    v1::Factor factor;
    EXPECT_TRUE(FactorizeRange(Dense(kN, kN), range, &factor).ok());
    return factor;
  });
  device().copy_gate().WaitUntilHeld();
  memory = nullptr;
  EXPECT_EQ(device().live_shareable_memories(), 1);
  device().copy_gate().Open();
  ExpectSolves(call.get());
  WaitUntil([&] { return core().shared_regions.totals().regions == 0; }, "released");
}

TEST_F(DeviceMemoryTest, ALostDeviceEndsOnlyTheCall) {
  StartDevices({{.name = "cuda:0", .uuid = kGpu}, {.name = "cuda:1"}});
  const auto memory = Map(kUnit);
  ASSERT_NE(memory, nullptr);
  memory->Write(Bytes(Matrix(kN)));
  device().BreakDown();
  v1::Factor factor;
  const grpc::Status status =
      FactorizeRange(Dense(kN, kN), Range(memory->region(), 0, kMatrixBytes), &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  EXPECT_EQ(factor.device(), "cuda:1");
}

}  // namespace
}  // namespace crout::shared_memory_test
