// SPDX-License-Identifier: Apache-2.0

// Tests regions of shared memory: which files are accepted, their limits, and payloads and replies
// in them, also of clients that violate the rules.
#include <fcntl.h>
#include <sys/mman.h>

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/error.h"
#include "tests/server/rpc/fixture.h"
#include "tests/server/scrape.h"
#include "tests/support/peers/memory_peer.h"
#include "tests/support/status_matchers.h"

namespace crout::shared_memory_test {
namespace {

using testing::FailsWith;
using testing::FakeDeviceOptions;
using ::testing::HasSubstr;
using testing::MemoryFile;
using ::testing::Optional;

constexpr int64_t kN = 48;
constexpr size_t kMatrixBytes = kN * kN * sizeof(double);
constexpr size_t kRegionBytes = size_t{1} << 20;
constexpr uid_t kUser = 1234;

class SharedMemoryTest : public testing::RpcTest {
 protected:
  using Region = SharedRegions::Region;

  void Start(const FakeDeviceOptions& device = {}) {
    Config config = SmallConfig();
    config.max_shared_memory_bytes = 16 * kRegionBytes;
    StartServer(device, config);
  }
  absl::StatusOr<Region> Add(OwnedFile file, uint64_t size, uid_t user = kUser) {
    std::promise<absl::StatusOr<Region>> done;
    core().shared_regions.Add(std::move(file), size, user, [&done](absl::StatusOr<Region> region) {
      done.set_value(std::move(region));
    });
    return done.get_future().get();
  }
  absl::StatusOr<Region> Add(const MemoryFile& file, uid_t user = kUser) {
    return Add(file.Duplicate(), file.bytes().size(), user);
  }
  static v1::SharedRange Range(const Region& region, uint64_t offset, uint64_t size) {
    v1::SharedRange range;
    range.set_region(region->id());
    range.set_offset(offset);
    range.set_size(size);
    return range;
  }
  double Sample(const std::string& name) {
    return SampleOf(core().metrics.Scrape(), name).value_or(-1);
  }

  // Runs Factorize with messages that `fill` completes, one after the other while it returns true.
  template <class Fill>
  grpc::Status FactorizeWith(const v1::MatrixSpec& matrix, Fill fill, v1::Factor* factor) {
    grpc::ClientContext context;
    auto stream = stub().Factorize(&context);
    for (int i = 0;; ++i) {
      v1::FactorizeRequest request;
      if (i == 0) *request.mutable_header()->mutable_matrix() = matrix;
      if (!fill(i, request) || !stream->Write(request)) break;
    }
    stream->WritesDone();
    v1::FactorizeResponse response;
    while (stream->Read(&response)) {
      if (response.has_factor()) *factor = response.factor();
    }
    return stream->Finish();
  }
  grpc::Status FactorizeRange(const v1::MatrixSpec& matrix, const v1::SharedRange& range,
                              v1::Factor* factor) {
    return FactorizeWith(
        matrix,
        [&](int i, v1::FactorizeRequest& request) {
          *request.mutable_shared_data() = range;
          return i == 0;
        },
        factor);
  }
  // Expects that the factor solves a system with Matrix(kN).
  void ExpectSolves(const v1::Factor& factor) {
    Solved solved;
    const std::vector<double> b(kN, 1.0);
    ASSERT_TRUE(Solve(factor.handle(), b, &solved).ok());
    EXPECT_LT(solved.result.backward_error(), 1e-14);
  }
};

std::string TextOf(const std::vector<double>& a) {
  std::string text = "%%MatrixMarket matrix array real general\n";
  absl::StrAppend(&text, kN, " ", kN, "\n");
  for (const double value : a) text += absl::StrCat(value, "\n");
  return text;
}

TEST_F(SharedMemoryTest, RefusesFilesWhoseAccessCanFail) {
  Start();
  const auto refuse = [&](const MemoryFile& file, const char* reason) {
    EXPECT_THAT(Add(file), FailsWith(absl::StatusCode::kInvalidArgument, reason));
  };
  refuse(MemoryFile(kRegionBytes, 0), "can shrink or grow");
  refuse(MemoryFile(kRegionBytes, F_SEAL_SHRINK), "can shrink or grow");
  refuse(MemoryFile(kRegionBytes, F_SEAL_GROW), "can shrink or grow");
  refuse(MemoryFile(kRegionBytes, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE),
         "cannot map it");
  const MemoryFile good(kRegionBytes);
  for (const uint64_t size :
       {uint64_t{0}, uint64_t{kRegionBytes} - 1, uint64_t{kRegionBytes} + 1, ~uint64_t{0}}) {
    EXPECT_THAT(Add(good.Duplicate(), size),
                FailsWith(absl::StatusCode::kInvalidArgument, "offer the whole file"));
  }
  int pipes[2];
  ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
  const OwnedFile writer(pipes[1]);
  EXPECT_THAT(Add(OwnedFile(pipes[0]), kRegionBytes),
              FailsWith(absl::StatusCode::kInvalidArgument, "has no seals"));
  OwnedFile regular(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  EXPECT_THAT(Add(std::move(regular), kRegionBytes),
              FailsWith(absl::StatusCode::kInvalidArgument, "has no seals"));
  EXPECT_EQ(Held().host_reserved, 0);
  EXPECT_EQ(core().shared_regions.totals().regions, 0);
}

TEST_F(SharedMemoryTest, RefusesHugePages) {
  Start();
  const size_t huge = size_t{2} << 20;
  OwnedFile file(memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB));
  if (file.get() < 0) GTEST_SKIP() << "this system has no huge pages";
  ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(huge)), 0);
  ASSERT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_THAT(Add(std::move(file), huge),
              FailsWith(absl::StatusCode::kInvalidArgument, "has huge pages"));
}

TEST_F(SharedMemoryTest, ChargesARegionUntilItsLastUse) {
  Start();
  const MemoryFile file(kRegionBytes - 1);
  auto region = Add(file);
  ASSERT_OK(region);
  // The seal also holds for this descriptor.
  EXPECT_NE(ftruncate(file.get(), 0), 0);
  EXPECT_EQ(Held().host_reserved, kRegionBytes);
  EXPECT_EQ(device().live_registrations(), 1);
  const SharedRegions::Totals totals = core().shared_regions.totals();
  EXPECT_EQ(totals.regions, 1);
  EXPECT_EQ(totals.bytes, kRegionBytes);
  EXPECT_EQ(totals.registered_bytes, kRegionBytes);
  Region second = *region;
  const std::string id = second->id();
  *region = nullptr;
  EXPECT_OK(core().shared_regions.Find(id, ""));
  second = nullptr;
  WaitUntil([&] { return Held().host_reserved == 0; }, "returned");
  EXPECT_THAT(core().shared_regions.Find(id, ""), FailsWith(absl::StatusCode::kAborted, "hold"));
  WaitUntil([&] { return core().shared_regions.totals().regions == 0; }, "counted");
  EXPECT_EQ(device().live_registrations(), 0);
}

TEST_F(SharedMemoryTest, LimitsTheMemoryOfAUserAndOfAll) {
  Start();
  const MemoryFile quarter(4 * kRegionBytes);
  const MemoryFile page(4096);
  EXPECT_THAT(Add(MemoryFile(4 * kRegionBytes + 1)),
              FailsWith(absl::StatusCode::kResourceExhausted, "a quarter"));
  std::vector<Region> regions;
  for (const uid_t user : {kUser, kUser + 1, kUser + 2, kUser + 3}) {
    auto region = Add(quarter, user);
    ASSERT_OK(region);
    regions.push_back(*std::move(region));
  }
  EXPECT_THAT(Add(page), FailsWith(absl::StatusCode::kResourceExhausted, "a quarter"));
  EXPECT_THAT(Add(page, kUser + 4), FailsWith(absl::StatusCode::kResourceExhausted, "all users"));
  regions.pop_back();
  WaitUntil([&] { return core().shared_regions.totals().regions == 3; }, "released");
  EXPECT_OK(Add(page, kUser + 4));
}

TEST_F(SharedMemoryTest, FindsARegionForItsUserOnly) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string& id = (*region)->id();
  EXPECT_EQ(id.size(), SharedRegions::kIdBytes);
  EXPECT_OK(core().shared_regions.Find(id, "1234"));
  const auto others = core().shared_regions.Find(id, "1235");
  EXPECT_THAT(others, FailsWith(absl::StatusCode::kAborted, "does not hold this region"));
  EXPECT_THAT(ReasonOf(others.status()), Optional(std::string("SHARED_MEMORY_GONE")));
  EXPECT_FALSE(core().shared_regions.Find("", "1234").ok());
}

TEST_F(SharedMemoryTest, IsOffByDefault) {
  StartServer();
  EXPECT_THAT(Add(MemoryFile(kRegionBytes)),
              FailsWith(absl::StatusCode::kFailedPrecondition, "--max-shared-memory"));
  v1::SharedRange range;
  range.set_region(std::string(16, 'x'));
  v1::Factor factor;
  const grpc::Status status = FactorizeRange(Dense(kN, kN), range, &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED);
}

TEST_F(SharedMemoryTest, FactorsADenseMatrixWithoutStaging) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  file.Write(Bytes(Matrix(kN)), 4096);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Dense(kN, kN), Range(*region, 4096, kMatrixBytes), &factor).ok());
  ExpectSolves(factor);
  EXPECT_EQ(device().direct_bytes(), kMatrixBytes);
  EXPECT_EQ(Sample("crout_shared_memory_received_bytes_total"), kMatrixBytes);
}

TEST_F(SharedMemoryTest, StagesADenseMatrixThatIsNotRegistered) {
  Start({.registers = false});
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  EXPECT_EQ(core().shared_regions.totals().registered_bytes, 0);
  file.Write(Bytes(Matrix(kN)));
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Dense(kN, kN), Range(*region, 0, kMatrixBytes), &factor).ok());
  ExpectSolves(factor);
  EXPECT_EQ(device().direct_bytes(), 0);
}

class LargeSharedMemoryTest : public SharedMemoryTest,
                              public ::testing::WithParamInterface<bool> {};
INSTANTIATE_TEST_SUITE_P(Registered, LargeSharedMemoryTest, ::testing::Bool());

// 1536 x 1536 float64 have 18 MiB: several turns.
TEST_P(LargeSharedMemoryTest, ReceivesALargeMatrixInTurns) {
  constexpr int64_t kLarge = 1536;
  constexpr size_t kLargeBytes = kLarge * kLarge * sizeof(double);
  Config config = SmallConfig();
  config.max_shared_memory_bytes = size_t{128} << 20;
  StartServer({.registers = GetParam()}, config);
  const MemoryFile file(kLargeBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  file.Write(Bytes(Matrix(kLarge)));
  v1::Factor factor;
  const grpc::Status status =
      FactorizeRange(Dense(kLarge, kLarge), Range(*region, 0, kLargeBytes), &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(factor.n(), kLarge);
  EXPECT_EQ(device().direct_bytes(), GetParam() ? kLargeBytes : 0);
}

TEST_F(SharedMemoryTest, MixesRangesAndMessages) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string data = Bytes(Matrix(kN));
  file.Write(data);
  v1::Factor factor;
  const grpc::Status status = FactorizeWith(
      Dense(kN, kN),
      [&](int i, v1::FactorizeRequest& request) {
        const size_t third = kMatrixBytes / 3;
        if (i == 1) {
          request.set_data(data.substr(third, third));
        } else {
          *request.mutable_shared_data() =
              Range(*region, i == 0 ? 0 : 2 * third, i == 0 ? third : kMatrixBytes - 2 * third);
        }
        return i < 3;
      },
      &factor);
  ASSERT_TRUE(status.ok()) << status.error_message();
  ExpectSolves(factor);
}

TEST_F(SharedMemoryTest, RefusesRangesOutsideTheRegion) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  v1::Factor factor;
  for (const auto& [offset, size] :
       std::vector<std::pair<uint64_t, uint64_t>>{{kRegionBytes - kMatrixBytes + 1, kMatrixBytes},
                                                  {kRegionBytes + 1, 0},
                                                  {8, ~uint64_t{0}},
                                                  {~uint64_t{0}, 8},
                                                  {~uint64_t{0}, ~uint64_t{0}}}) {
    const grpc::Status status =
        FactorizeRange(Dense(kN, kN), Range(*region, offset, size), &factor);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_THAT(status.error_message(), HasSubstr("its region has 1048576 bytes"));
  }
  // More bytes than the header declares.
  const grpc::Status status =
      FactorizeRange(Dense(kN, kN), Range(*region, 0, kMatrixBytes + 8), &factor);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  const grpc::Status less =
      FactorizeRange(Dense(kN, kN), Range(*region, 0, kMatrixBytes - 8), &factor);
  EXPECT_EQ(less.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SharedMemoryTest, ParsesATextAndSparseEntries) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string text = TextOf(Matrix(kN));
  file.Write(text);
  v1::Factor factor;
  ASSERT_TRUE(FactorizeRange(Text(), Range(*region, 0, text.size()), &factor).ok());
  EXPECT_EQ(factor.n(), kN);

  v1::MatrixSpec spec;
  spec.mutable_sparse()->set_dtype(v1::DTYPE_FLOAT64);
  spec.mutable_sparse()->set_format(v1::SPARSE_FORMAT_COORDINATE);
  spec.mutable_sparse()->set_rows(kN);
  spec.mutable_sparse()->set_cols(kN);
  spec.mutable_sparse()->set_entries(kN);
  spec.mutable_sparse()->set_index_bytes(4);
  std::vector<int32_t> positions(kN);
  for (int32_t i = 0; i < kN; ++i) positions[i] = i;
  const std::string indices(reinterpret_cast<const char*>(positions.data()), kN * 4);
  const std::string entries = indices + indices + Bytes(std::vector<double>(kN, 2.0));
  file.Write(entries);
  ASSERT_TRUE(FactorizeRange(spec, Range(*region, 0, entries.size()), &factor).ok());
  EXPECT_EQ(factor.n(), kN);
}

TEST_F(SharedMemoryTest, SolvesIntoTheMemoryOfTheRequest) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  v1::Factor factor;
  ASSERT_TRUE(Factorize(kN, &factor).ok());
  const std::vector<double> b(kN, 1.0);
  file.Write(Bytes(b));
  Solved expected;
  ASSERT_TRUE(Solve(factor.handle(), b, &expected).ok());
  constexpr size_t kX = 8192;
  const size_t size = kN * sizeof(double);
  for (const size_t room : {size, size - 1}) {
    grpc::ClientContext context;
    auto stream = stub().Solve(&context);
    v1::SolveRequest request;
    request.mutable_header()->set_handle(factor.handle());
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    *request.mutable_shared_data() = Range(*region, 0, size);
    *request.mutable_shared_reply() = Range(*region, kX, room);
    stream->Write(request);
    stream->WritesDone();
    v1::SolveResponse response;
    std::string data;
    bool shared = false;
    while (stream->Read(&response)) {
      data += response.data();
      if (!response.has_shared_bytes()) continue;
      EXPECT_EQ(response.shared_bytes(), size);
      shared = true;
    }
    ASSERT_TRUE(stream->Finish().ok());
    // A range that is too small is not used.
    EXPECT_EQ(shared, room == size);
    EXPECT_EQ(shared ? file.Read(kX, size) : data, Bytes(expected.x));
  }
  EXPECT_EQ(Sample("crout_shared_memory_sent_bytes_total"), size);
}

TEST_F(SharedMemoryTest, FactorsAndSolvesWithBothPayloadsShared) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const size_t size = kN * sizeof(double);
  file.Write(Bytes(Matrix(kN)));
  file.Write(Bytes(std::vector<double>(kN, 1.0)), kMatrixBytes);
  grpc::ClientContext context;
  auto stream = stub().FactorizeAndSolve(&context);
  v1::FactorizeAndSolveRequest request;
  *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
  *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
  *request.mutable_shared_data() = Range(*region, 0, kMatrixBytes);
  *request.mutable_shared_rhs_data() = Range(*region, kMatrixBytes, size);
  *request.mutable_shared_reply() = Range(*region, kMatrixBytes + size, size);
  stream->Write(request);
  stream->WritesDone();
  v1::FactorizeAndSolveResponse response;
  bool shared = false;
  while (stream->Read(&response)) {
    shared |= response.shared_bytes() == size;
    if (response.has_result()) {
      EXPECT_LT(response.result().backward_error(), 1e-14);
    }
  }
  ASSERT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(shared);
}

TEST_F(SharedMemoryTest, RunsASeriesInSharedMemory) {
  Start();
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const size_t size = kN * sizeof(double);
  const size_t at_x = kMatrixBytes + 2 * size;
  grpc::ClientContext context;
  auto stream = stub().SolveSeries(&context);
  for (int step = 0; step < 3; ++step) {
    file.Write(Bytes(Matrix(kN, step)));
    file.Write(Bytes(std::vector<double>(kN, 1.0 + step)), kMatrixBytes);
    file.Write(Bytes(std::vector<double>(kN, 0.0)), kMatrixBytes + size);
    v1::SolveSeriesRequest request;
    *request.mutable_header()->mutable_matrix() = Dense(kN, kN);
    *request.mutable_header()->mutable_rhs() = Dense(kN, 1);
    *request.mutable_header()->mutable_x0() = Dense(kN, 1);
    *request.mutable_shared_data() = Range(*region, 0, kMatrixBytes);
    *request.mutable_shared_rhs_data() = Range(*region, kMatrixBytes, size);
    *request.mutable_shared_x0_data() = Range(*region, kMatrixBytes + size, size);
    if (step < 2) *request.mutable_shared_reply() = Range(*region, at_x, size);
    ASSERT_TRUE(stream->Write(request));
    v1::SolveSeriesResponse response;
    uint64_t shared = 0;
    std::string data;
    do {
      ASSERT_TRUE(stream->Read(&response));
      shared += response.shared_bytes();
      data += response.data();
    } while (!response.has_result());
    EXPECT_LT(response.result().backward_error(), 1e-12);
    // The memory of a step is not used for the reply of the next one.
    EXPECT_EQ(shared, step < 2 ? size : 0);
    EXPECT_EQ(data.size(), step < 2 ? 0 : size);
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// A client that changes the memory during the upload gets a result or an error, and the server
// continues.
TEST_F(SharedMemoryTest, SurvivesAClientThatRewritesItsMemory) {
  Start({.has_sparse_ops = true});
  const MemoryFile file(kRegionBytes);
  auto region = Add(file);
  ASSERT_OK(region);
  const std::string text = TextOf(Matrix(kN));
  std::vector<int32_t> positions(kN);
  for (int32_t i = 0; i < kN; ++i) positions[i] = i;
  const std::string indices(reinterpret_cast<const char*>(positions.data()), kN * 4);
  const std::string entries = indices + indices + Bytes(std::vector<double>(kN, 2.0));
  v1::MatrixSpec sparse;
  sparse.mutable_sparse()->set_dtype(v1::DTYPE_FLOAT64);
  sparse.mutable_sparse()->set_format(v1::SPARSE_FORMAT_COORDINATE);
  sparse.mutable_sparse()->set_rows(kN);
  sparse.mutable_sparse()->set_cols(kN);
  sparse.mutable_sparse()->set_entries(kN);
  sparse.mutable_sparse()->set_index_bytes(4);
  const std::vector<std::pair<v1::MatrixSpec, std::string>> payloads = {
      {Dense(kN, kN), Bytes(Matrix(kN))}, {Text(), text}, {sparse, entries}};
  for (const auto& [spec, payload] : payloads) {
    std::atomic<bool> stop = false;
    std::thread rewriter([&, payload = payload] {
      for (unsigned i = 0; !stop; ++i) {
        file.Write(payload);
        const size_t at = i * 97 % (payload.size() - 8);
        file.Write(std::string(8, static_cast<char>(i)), at);
      }
    });
    for (int i = 0; i < 50; ++i) {
      v1::Factor factor;
      const grpc::Status status = FactorizeRange(spec, Range(*region, 0, payload.size()), &factor);
      EXPECT_TRUE(status.ok() || status.error_code() == grpc::StatusCode::INVALID_ARGUMENT)
          << status.error_message();
    }
    stop = true;
    rewriter.join();
    // The payload as it should be gives the right result again.
    file.Write(payload);
    v1::Factor factor;
    EXPECT_TRUE(FactorizeRange(spec, Range(*region, 0, payload.size()), &factor).ok());
  }
}

// The client's connection holds a region, and so does a call.
TEST_F(SharedMemoryTest, KeepsARegionWhileACallUsesIt) {
  Start();
  auto file = std::make_unique<MemoryFile>(kRegionBytes);
  auto region = Add(*file);
  ASSERT_OK(region);
  file->Write(Bytes(Matrix(kN)));
  device().copy_gate().Close();
  auto call = std::async(std::launch::async, [&, range = Range(*region, 0, kMatrixBytes)] {
    v1::Factor factor;
    const grpc::Status status = FactorizeRange(Dense(kN, kN), range, &factor);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return factor;
  });
  device().copy_gate().WaitUntilHeld();
  *region = nullptr;
  file.reset();
  EXPECT_EQ(core().shared_regions.totals().regions, 1);
  device().copy_gate().Open();
  ExpectSolves(call.get());
  WaitUntil([&] { return core().shared_regions.totals().regions == 0; }, "released");
}

}  // namespace
}  // namespace crout::shared_memory_test
