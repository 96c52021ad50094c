// SPDX-License-Identifier: Apache-2.0

// Tests the placement of jobs on several devices, and that no device delays another.
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "tests/server/rpc/fixture.h"

namespace crout::testing::placement_test {
namespace {

// Order of a matrix that is too large to be admitted at once: a thread may block for it.
constexpr int64_t kLarge = 1100;
// Deadline of calls: longer than any of them takes, and much shorter than the timeout of a test.
constexpr std::chrono::seconds kLimit{60};

class PlacementTest : public RpcTest {
 protected:
  // `slow_solvers` are those of the second device.
  void Start(double slowness = 1, const std::vector<std::string>& slow_solvers = {}) {
    Config config = SmallConfig();
    config.pool.device_budget_bytes = size_t{480} << 20;
    config.pool.host_budget_bytes = size_t{480} << 20;
    config.pool.scheduler.queue_capacity = config.limits.queue_capacity = 64;
    FakeDeviceOptions first;
    first.memory_bytes = config.pool.device_budget_bytes;
    FakeDeviceOptions second = first;
    second.name = "cuda:1";
    second.slowness = slowness;
    second.slow_solvers = slow_solvers;
    StartServers({first, second}, config);
  }

  // A Factorize call. The destructor cancels it unless it has finished.
  class Upload {
   public:
    Upload(PlacementTest& test, const v1::FactorizeHeader& header) {
      context_.set_deadline(std::chrono::system_clock::now() + kLimit);
      stream_ = test.stub().Factorize(&context_);
      v1::FactorizeRequest request;
      *request.mutable_header() = header;
      stream_->Write(request);
    }
    ~Upload() {
      if (finished_) return;
      context_.TryCancel();
      Finish();
    }
    void Send(const std::string& bytes) {
      constexpr size_t kChunk = size_t{1} << 20;
      v1::FactorizeRequest request;
      for (size_t sent = 0; sent < bytes.size(); sent += kChunk) {
        request.set_data(bytes.substr(sent, kChunk));
        stream_->Write(request);
      }
      stream_->WritesDone();
    }
    grpc::Status Finish(v1::Factor* factor = nullptr) {
      finished_ = true;
      v1::FactorizeResponse response;
      while (stream_->Read(&response)) {
        if (response.has_factor() && factor != nullptr) *factor = response.factor();
      }
      return stream_->Finish();
    }

   private:
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::FactorizeRequest, v1::FactorizeResponse>> stream_;
    bool finished_ = false;
  };

  static v1::FactorizeHeader Header(const std::string& device, int64_t n) {
    v1::FactorizeHeader header;
    *header.mutable_matrix() = Dense(n, n);
    header.mutable_options()->set_device(device);
    header.mutable_options()->set_algorithm(v1::ALGORITHM_GETRF);
    return header;
  }
  static v1::FactorizeHeader TextHeader(const std::string& device) {
    v1::FactorizeHeader header;
    header.mutable_matrix()->mutable_matrix_market();
    header.mutable_options()->set_device(device);
    return header;
  }
  static std::string Text(int64_t n) {
    const std::string order = std::to_string(n);
    std::string text = "%%MatrixMarket matrix coordinate real general\n" + order + " " + order +
                       " " + order + "\n";
    for (int64_t i = 1; i <= n; ++i) {
      text += std::to_string(i) + " " + std::to_string(i) + " 2\n";
    }
    return text;
  }
  v1::Factor FactorOn(const std::string& device, int64_t n) {
    Upload upload(*this, Header(device, n));
    upload.Send(Bytes(Matrix(n)));
    v1::Factor factor;
    const grpc::Status status = upload.Finish(&factor);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return factor;
  }
  grpc::Status Release(const std::string& handle) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::ReleaseFactorRequest request;
    request.set_handle(handle);
    v1::ReleaseFactorResponse response;
    return stub().ReleaseFactor(&context, request, &response);
  }
  grpc::Status Get(const std::string& handle) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kLimit);
    v1::GetFactorsRequest request;
    request.set_handle(handle);
    auto stream = stub().GetFactors(&context, request);
    v1::GetFactorsResponse response;
    while (stream->Read(&response)) {
    }
    return stream->Finish();
  }
  // Expects that the device serves every kind of request.
  void ExpectServes(const std::string& device) {
    const v1::Factor factor = FactorOn(device, kLarge);
    EXPECT_EQ(factor.device(), device);
    Solved solved;
    EXPECT_TRUE(Solve(factor.handle(), std::vector<double>(kLarge, 1.0), &solved).ok());
    EXPECT_TRUE(Get(factor.handle()).ok());
    EXPECT_TRUE(Release(factor.handle()).ok());
    Upload text(*this, TextHeader(device));
    text.Send(Text(kLarge));
    EXPECT_TRUE(text.Finish().ok());
  }
  int ExpectedOn(size_t i) { return core().engine.devices.slots()[i]->expected.sum().jobs; }
};

TEST_F(PlacementTest, UploadsInFlightAreSpreadBySpeed) {
  Start(/*slowness=*/2);
  // The matrices are large, because predictions for small ones depend on times that the devices
  // measure.
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 1; i <= 12; ++i) {
    uploads.push_back(std::make_unique<Upload>(*this, Header("", kLarge)));
    WaitUntil([&] { return ExpectedOn(0) + ExpectedOn(1) == i; }, "the upload to be placed");
  }
  EXPECT_EQ(ExpectedOn(0), 8);
  EXPECT_EQ(ExpectedOn(1), 4);
  uploads.clear();
  WaitUntil([&] { return ExpectedOn(0) + ExpectedOn(1) == 0; }, "the uploads to be gone");
}

// By its own costs, the second device would choose another solver than the first.
TEST_F(PlacementTest, AHotFactorIsSolvedOnAnIdleDeviceWithTheSameBits) {
  Start(/*slowness=*/1, /*slow_solvers=*/{"getrs", "trsm"});
  const v1::Factor own = FactorOn("cuda:1", kLarge);
  Solved by_own_costs;
  EXPECT_TRUE(Solve(own.handle(), std::vector<double>(kLarge, 1.0), &by_own_costs).ok());
  const v1::Factor factor = FactorOn("cuda:0", kLarge);
  Idle();
  // The predicted seconds of a queued job do not decrease while it waits.
  device(0).factor_gate().Close();
  std::vector<std::unique_ptr<Upload>> jobs;
  for (int i = 0; i < 2; ++i) {
    jobs.push_back(std::make_unique<Upload>(*this, Header("cuda:0", kLarge)));
    jobs.back()->Send(Bytes(Matrix(kLarge)));
  }
  const DeviceScheduler& scheduler = *core().engine.devices.slots()[0]->scheduler;
  WaitUntil([&] { return scheduler.load().queue_depth == 1; }, "a job to wait");
  std::vector<double> b(kLarge);
  for (int64_t i = 0; i < kLarge; ++i) b[i] = 1.0 / static_cast<double>(i + 3);
  std::vector<Solved> waited(2);
  std::vector<std::thread> solves;
  for (Solved& solved : waited) {
    solves.emplace_back([&] { EXPECT_TRUE(Solve(factor.handle(), b, &solved).ok()); });
  }
  WaitUntil([&] { return core().engine.cache.copies().entries == 1; }, "a copy of the factor");
  Solved spread;
  EXPECT_TRUE(Solve(factor.handle(), b, &spread).ok());
  EXPECT_EQ(spread.result.device(), "cuda:1");
  device(0).factor_gate().Open();
  for (std::thread& solve : solves) solve.join();
  for (const Solved& solved : waited) {
    EXPECT_EQ(solved.result.device(), "cuda:0");
    EXPECT_EQ(solved.result.solver(), spread.result.solver());
    EXPECT_NE(solved.result.solver(), by_own_costs.result.solver());
    EXPECT_EQ(solved.x, spread.x);
  }
  for (auto& job : jobs) EXPECT_TRUE(job->Finish().ok());
  EXPECT_TRUE(Release(factor.handle()).ok());
  components().Housekeep();
  EXPECT_EQ(core().engine.cache.copies().entries, 0);
}

TEST_F(PlacementTest, AnAlgorithmRunsOnADeviceThatHasIt) {
  Start();
  v1::FactorizeHeader header = Header("", 10);
  header.mutable_options()->set_algorithm(v1::ALGORITHM_CROUT_LU);
  Upload upload(*this, header);
  EXPECT_EQ(upload.Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

// On the wedged device, all threads for admissions, text preparation, releases and jobs are
// blocked.
TEST_F(PlacementTest, ADeviceThatHangsDoesNotDelayOthers) {
  Start();
  std::vector<v1::Factor> factors;
  for (int i = 0; i < 4; ++i) factors.push_back(FactorOn("cuda:0", kLarge));
  device(0).Wedge();
  std::vector<std::unique_ptr<Upload>> uploads;
  for (int i = 0; i < 8; ++i) {
    uploads.push_back(std::make_unique<Upload>(*this, Header("cuda:0", kLarge)));
  }
  for (int i = 0; i < 8; ++i) {
    uploads.push_back(std::make_unique<Upload>(*this, TextHeader("cuda:0")));
    uploads.back()->Send(Text(kLarge));
  }
  std::vector<std::thread> releases;
  for (const v1::Factor& factor : factors) {
    releases.emplace_back([this, &factor] { Release(factor.handle()); });
  }
  Gate& memory = device(0).counting_memory().gate();
  // The threads are those of four admissions, three preparations and two releases. One of the
  // preparations uses the thread that is reserved for small matrices.
  WaitUntil([&] { return memory.held() >= 9; }, "the device to hold all its threads");
  components().Housekeep();
  ExpectServes("cuda:1");
  EXPECT_GE(memory.held(), 9);
  device(0).Recover();
  for (std::thread& release : releases) release.join();
  uploads.clear();
  Idle();  // before this, the device has no memory for another job
  ExpectServes("cuda:0");
}

TEST_F(PlacementTest, ParsingTheEndOfATextDelaysNoAdmission) {
  Start();
  const v1::Factor factor = FactorOn("cuda:0", kLarge);
  device(0).HoldUploads();
  std::vector<std::unique_ptr<Upload>> texts;
  for (int i = 0; i < 8; ++i) {
    texts.push_back(std::make_unique<Upload>(*this, TextHeader("cuda:0")));
    texts.back()->Send(Text(kLarge));
  }
  WaitUntil([&] { return device(0).live_uploaders() == 3; }, "the texts' threads to be busy");
  EXPECT_TRUE(Get(factor.handle()).ok());
  device(0).ReleaseUploads();
  for (auto& text : texts) EXPECT_TRUE(text->Finish().ok());
}

// A sweep started for one device also releases memory of other devices.
TEST_F(PlacementTest, ASweepWaitsForNoDevice) {
  Start();
  FactorOn("cuda:0", kLarge);
  Idle();
  failpoints().Advance(absl::Hours(2));
  device(0).Wedge();
  components().Housekeep();
  EXPECT_EQ(Held().factors, 0u);
  device(0).counting_memory().gate().WaitUntilHeld();
  ExpectServes("cuda:1");
}

}  // namespace
}  // namespace crout::testing::placement_test
