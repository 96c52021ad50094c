// SPDX-License-Identifier: Apache-2.0

// Tests cost ratios: the measured time of a method divided by the time in its table. A simulated
// clock measures them. Files that store them may have any content.
#include <sys/stat.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "gmock/gmock.h"
#include "kernels/algorithm_registry.h"
#include "kernels/costs/cost_ratios.h"
#include "kernels/costs/measured_costs.h"
#include "kernels/host/device/host_device.h"
#include "tests/support/status_matchers.h"

namespace crout::measured_costs_test {
namespace {

using testing::FailsWith;
using ::testing::HasSubstr;

constexpr DType kTypes[] = {DType::kFloat32, DType::kFloat64};

double Table(int64_t n) { return 1e-6 * static_cast<double>(n); }

// A simulated clock, which the methods advance.
struct Clock {
  double now = 100;
};
using SecondsOf = std::function<double(DType dtype, int64_t n)>;

class TimedAlgorithm final : public LuAlgorithm {
 public:
  TimedAlgorithm(const char* name, Clock& clock, SecondsOf seconds)
      : clock_(clock), seconds_(std::move(seconds)) {
    traits_.name = name;
    traits_.is_timed = true;
  }
  const MethodTraits& traits() const override { return traits_; }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, const LuParameters&) const override {
    return 0;
  }
  double PredictSeconds(DType dtype, int64_t n) const override {
    return Table(n) * ratios_.Ratio(traits_.name, dtype, n);
  }
  absl::Status Factor(ExecutionContext&, const AnyMatrix& a, int64_t*, std::span<std::byte>,
                      const LuParameters&, StopRequested) const override {
    const double seconds = seconds_(a.dtype, a.rows);
    clock_.now += std::abs(seconds);
    return seconds < 0 ? absl::InternalError("broken") : absl::OkStatus();
  }
  void Calibrate(const CostRatios& ratios) { ratios_ = ratios; }

 private:
  Clock& clock_;
  const SecondsOf seconds_;
  MethodTraits traits_;
  CostRatios ratios_;
};

class TimedSolver final : public TriangularSolver {
 public:
  TimedSolver(Clock& clock, SecondsOf seconds) : clock_(clock), seconds_(std::move(seconds)) {}
  const MethodTraits& traits() const override {
    static constexpr MethodTraits kTraits = {.name = "solver", .description = "", .is_timed = true};
    return kTraits;
  }
  double PredictSeconds(DType, int64_t n, int64_t) const override { return Table(n); }
  absl::StatusOr<size_t> WorkspaceBytes(DType, int64_t, int64_t) const override { return 0; }
  absl::Status Solve(ExecutionContext&, const FactorView& factor, Op, double, const AnyMatrix&,
                     std::span<std::byte>) const override {
    clock_.now += seconds_(factor.lu.dtype, factor.lu.rows);
    return absl::OkStatus();
  }

 private:
  Clock& clock_;
  const SecondsOf seconds_;
};

// A device with the memory and operations of the host, and with the methods of the test.
class TimedDevice final : public Device {
 public:
  class Context final : public ExecutionContext {
   public:
    Context(TimedDevice& device, std::unique_ptr<ExecutionContext> host)
        : device_(device), host_(std::move(host)) {}
    Device& device() override { return device_; }
    MatrixOps& ops() override { return host_->ops(); }
    DeviceReport& report() override { return host_->report(); }
    absl::Status Synchronize() override { return absl::OkStatus(); }

   private:
    TimedDevice& device_;
    const std::unique_ptr<ExecutionContext> host_;
  };

  TimedAlgorithm& Add(const char* name, SecondsOf seconds) {
    auto algorithm = std::make_unique<TimedAlgorithm>(name, clock_, std::move(seconds));
    TimedAlgorithm& added = *algorithm;
    catalogue_.algorithms.push_back(std::move(algorithm));
    return added;
  }
  void AddSolver(SecondsOf seconds) {
    catalogue_.solvers.push_back(std::make_unique<TimedSolver>(clock_, std::move(seconds)));
  }
  absl::StatusOr<CostRatios> Measure(const CostTrials& trials) {
    Context context(*this, *host_->CreateContext());
    return MeasureCosts(context, trials, [this] { return clock_.now; });
  }

  const DeviceInfo& info() const override { return host_->info(); }
  bool healthy() const override { return true; }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override {
    return std::make_unique<Context>(*this, *host_->CreateContext());
  }
  MemoryResource& memory() override { return host_->memory(); }
  MemoryResource& staging_memory() override { return host_->staging_memory(); }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> to) override {
    return host_->StartUpload(to);
  }
  const Catalogue& catalogue() const override { return catalogue_; }

 private:
  Clock clock_;
  const std::unique_ptr<Device> host_ = host::MakeDevice({.threads = 1});
  Catalogue catalogue_;
};

CostTrials Trials(double max_seconds = 10) { return {{16, 64, 128}, max_seconds}; }

TEST(MeasureCostsTest, ComputesRatiosOfMeasuredTimes) {
  TimedDevice device;
  device.Add("slow",
             [](DType dtype, int64_t n) { return (dtype == DType::kFloat64 ? 64 : 2) * Table(n); });
  device.Add("fast", [](DType, int64_t n) { return n == 128 ? Table(n) / 4 : Table(n) * 4; });
  device.AddSolver([](DType, int64_t n) { return 3 * Table(n); });
  ASSERT_OK_AND_ASSIGN(const CostRatios ratios, device.Measure(Trials()));
  for (const int64_t n : {1, 16, 40, 64, 128, 5000}) {
    EXPECT_NEAR(ratios.Ratio("slow", DType::kFloat64, n), 64, 1e-6);
    EXPECT_NEAR(ratios.Ratio("slow", DType::kFloat32, n), 2, 1e-6);
    EXPECT_NEAR(ratios.Ratio("solver", DType::kFloat32, n), 3, 1e-6);
    EXPECT_EQ(ratios.Ratio("absent", DType::kFloat32, n), 1);
  }
  EXPECT_NEAR(ratios.Ratio("fast", DType::kFloat64, 64), 4, 1e-6);
  EXPECT_NEAR(ratios.Ratio("fast", DType::kFloat64, 90), 1, 0.03);  // interpolated by a power law
  EXPECT_NEAR(ratios.Ratio("fast", DType::kFloat64, 1000), 0.25, 1e-6);
}

TEST(MeasureCostsTest, AutoAndEstimatesUseTheRatios) {
  TimedDevice device;
  TimedAlgorithm& slow = device.Add("slow", [](DType dtype, int64_t n) {
    return (dtype == DType::kFloat64 ? 10 : 0.1) * Table(n);
  });
  TimedAlgorithm& fast = device.Add("fast", [](DType, int64_t n) { return Table(n); });
  ASSERT_OK_AND_ASSIGN(const CostRatios ratios, device.Measure(Trials()));
  for (TimedAlgorithm* algorithm : {&slow, &fast}) algorithm->Calibrate(ratios);
  for (const int64_t n : {10, 100, 1000}) {
    EXPECT_EQ(*FindAlgorithm(device, "auto", DType::kFloat64, n), &fast);
    EXPECT_EQ(*FindAlgorithm(device, "auto", DType::kFloat32, n), &slow);
    EXPECT_NEAR(slow.PredictSeconds(DType::kFloat64, n), 10 * Table(n), 1e-9);
  }
}

// Two devices of different speed have the same table. Their predictions must differ, because the
// placement of jobs compares them.
TEST(MeasureCostsTest, PredictsDifferentTimesForDifferentDevices) {
  double predicted[2];
  for (const int which : {0, 1}) {
    TimedDevice device;
    TimedAlgorithm& method =
        device.Add("slow", [&](DType, int64_t n) { return (which == 0 ? 1 : 30) * Table(n); });
    ASSERT_OK_AND_ASSIGN(const CostRatios ratios, device.Measure(Trials()));
    method.Calibrate(ratios);
    predicted[which] = method.PredictSeconds(DType::kFloat64, 300);
  }
  EXPECT_NEAR(predicted[1] / predicted[0], 30, 1e-6);
}

TEST(MeasureCostsTest, SkipsLargeOrdersThatTakeTooLong) {
  TimedDevice device;
  int64_t largest = 0;
  device.Add("slow", [&](DType, int64_t n) {
    largest = std::max(largest, n);
    return 1e-5 * static_cast<double>(n * n * n);  // 0.04, 2.6 and 21 seconds
  });
  ASSERT_OK_AND_ASSIGN(const CostRatios ratios, device.Measure(Trials(2)));
  EXPECT_EQ(largest, 16);
  EXPECT_NEAR(ratios.Ratio("slow", DType::kFloat64, 128), 1e-5 * 16 * 16 * 16 / Table(16), 1e-3);
}

TEST(MeasureCostsTest, IgnoresDisturbedRuns) {
  TimedDevice device;
  int call = 0;
  device.Add("slow", [&](DType, int64_t n) { return (call++ % 3 == 1 ? 500 : 2) * Table(n); });
  ASSERT_OK_AND_ASSIGN(const CostRatios ratios, device.Measure(Trials()));
  EXPECT_NEAR(ratios.Ratio("slow", DType::kFloat64, 64), 2, 1e-6);
}

TEST(MeasureCostsTest, ReturnsErrorOfFailedMethod) {
  TimedDevice device;
  device.Add("slow", [](DType, int64_t n) { return n > 16 ? -1.0 : 1.0; });
  EXPECT_THAT(device.Measure(Trials(1000)), FailsWith(absl::StatusCode::kInternal, "broken"));
}

CostRatios Some() {
  CostRatios ratios;
  ratios.Set("getrf", DType::kFloat64, 256, 12.25);
  ratios.Set("getrf", DType::kFloat64, 4096, 63.5);
  ratios.Set("crout_lu", DType::kFloat32, 256, 0.03125);
  return ratios;
}

TEST(CostRatiosTest, ParsesSerializedRatios) {
  const std::string text = Some().Serialize("a GPU; 1");
  ASSERT_OK_AND_ASSIGN(const CostRatios read, CostRatios::Parse(text, "a GPU; 1"));
  for (const DType dtype : kTypes) {
    for (const int64_t n : {10, 256, 1000, 4096, 10000}) {
      for (const char* method : {"getrf", "crout_lu", "other"}) {
        EXPECT_EQ(read.Ratio(method, dtype, n), Some().Ratio(method, dtype, n));
      }
    }
  }
  EXPECT_THAT(CostRatios::Parse(text, "a GPU; 2"),
              FailsWith(absl::StatusCode::kInvalidArgument,
                        "another device or with other software versions"));
}

TEST(CostRatiosTest, RefusesDamagedText) {
  const std::string key = "key";
  const std::string text = Some().Serialize(key);
  for (size_t i = 0; i < text.size(); ++i) {
    std::string damaged = text;
    damaged[i] ^= 1;
    EXPECT_FALSE(CostRatios::Parse(damaged, key).ok()) << i;
    EXPECT_FALSE(CostRatios::Parse(text.substr(0, i), key).ok()) << i;
  }
  EXPECT_FALSE(CostRatios::Parse(text + "\n", key).ok());
  EXPECT_FALSE(CostRatios::Parse(std::string(CostRatios::kMaxTextBytes + 1, 'a'), key).ok());
}

// The checksum of these files is correct, because anyone who can write the file can compute it.
TEST(CostRatiosTest, RefusesInvalidLines) {
  const auto with_line = [](const std::string& line) {
    CostRatios none;
    // Serialize writes the key first, so that its second line is read as a ratio.
    std::string text = none.Serialize("key\n" + line);
    return text;
  };
  for (const char* line : {"getrf f64 256 1.5", "getrf c64 256 1.5", "getrf c128 256 1.5"}) {
    EXPECT_TRUE(CostRatios::Parse(with_line(line), "key").ok());
  }
  for (const char* line : {"",
                           "getrf",
                           "getrf f64 256",
                           "getrf f64 256 1.5 ",
                           "getrf f65 256 1.5",
                           "getrf f64 0 1.5",
                           "getrf f64 -1 1.5",
                           "getrf f64 1e3 1.5",
                           "getrf f64 99999999999999999999 1.5",
                           "getrf f64 256 nan",
                           "getrf f64 256 inf",
                           "getrf f64 256 0",
                           "getrf f64 256 -1",
                           "getrf f64 256 1e9",
                           "getrf f16 256 1.5",
                           "getrf f64 256 0x1p2",
                           "getrf f64 256 1.50",
                           "Getrf f64 256 1.5",
                           "getrf\tf64 256 1.5",
                           "getrf f64 256 1.5\ngetrf f64 256 1.5",
                           "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa f64 256 1.5"}) {
    EXPECT_FALSE(CostRatios::Parse(with_line(line), "key").ok()) << line;
  }
}

class StoredCostsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = std::filesystem::temp_directory_path() /
                 ("crout_costs_" + std::to_string(getpid()) + "_" +
                  ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directory(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name = "costs.txt") const { return directory_ / name; }
  StoredCosts Keep(const std::string& path, const std::string& key = "key") {
    return LoadOrMeasureCosts(path, key, [this]() -> absl::StatusOr<CostRatios> {
      ++measured_;
      return Some();
    });
  }
  static void Write(const std::string& path, const std::string& text) {
    std::ofstream(path) << text;
  }

  std::filesystem::path directory_;
  int measured_ = 0;
};

TEST_F(StoredCostsTest, MeasuresOnce) {
  const std::string path = Path("a/b/costs.txt");
  EXPECT_THAT(Keep(path).report, HasSubstr("stored in"));
  const StoredCosts again = Keep(path);
  EXPECT_THAT(again.report, HasSubstr("read from"));
  EXPECT_EQ(measured_, 1);
  EXPECT_EQ(again.ratios.Ratio("getrf", DType::kFloat64, 256), 12.25);
  struct stat about;
  ASSERT_EQ(stat(path.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777, 0600u);
  // No temporary file remains.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(directory_ / "a/b"),
                          std::filesystem::directory_iterator()),
            1);
}

// Ratios are equal bit by bit, so that `auto` makes the same choices after the second start.
TEST_F(StoredCostsTest, GivesTheSameRatiosMeasuredOrRead) {
  const auto keep = [this] {
    return LoadOrMeasureCosts(Path(), "key", []() -> absl::StatusOr<CostRatios> {
      CostRatios ratios;
      ratios.Set("getrf", DType::kFloat64, 256, 100.0 / 3);
      ratios.Set("getrf", DType::kFloat64, 1024, 1e-4 / 0.7);
      ratios.Set("getrf", DType::kFloat64, 4096, 1e5);  // out of range
      return ratios;
    });
  };
  const StoredCosts measured = keep();
  const StoredCosts read = keep();
  EXPECT_THAT(read.report, HasSubstr("read from"));
  for (const int64_t n : {100, 256, 500, 1024, 3000, 4096}) {
    EXPECT_EQ(read.ratios.Ratio("getrf", DType::kFloat64, n),
              measured.ratios.Ratio("getrf", DType::kFloat64, n))
        << n;
  }
}

TEST_F(StoredCostsTest, ReplacesUnsuitableFiles) {
  for (const std::string& text :
       {std::string(), std::string("garbage"), Some().Serialize("another key"),
        std::string(size_t{1} << 20, 'x')}) {
    Write(Path(), text);
    measured_ = 0;
    EXPECT_THAT(Keep(Path()).report, HasSubstr("stored in"));
    EXPECT_THAT(Keep(Path()).report, HasSubstr("read from"));
    EXPECT_EQ(measured_, 1);
  }
}

TEST_F(StoredCostsTest, MeasuresAgainIfNothingCanBeStored) {
  Write(Path("file"), "");
  ASSERT_EQ(mkfifo(Path("fifo").c_str(), 0600), 0);
  std::filesystem::create_directory(Path("directory"));
  for (const std::string& path : {std::string(), Path("file") + "/costs.txt", Path("directory")}) {
    measured_ = 0;
    for (int run = 0; run < 2; ++run) {
      const StoredCosts costs = Keep(path);
      EXPECT_THAT(costs.report, HasSubstr("measured in")) << path;
      EXPECT_FALSE(costs.ratios.empty());
    }
    EXPECT_EQ(measured_, 2) << path;
  }
  // Does not wait for a writer of the FIFO.
  EXPECT_THAT(Keep(Path("fifo")).report, HasSubstr("is not a regular file"));
}

TEST_F(StoredCostsTest, DoesNotFollowLinks) {
  Write(Path("elsewhere"), Some().Serialize("key"));
  std::filesystem::create_symlink(Path("elsewhere"), Path());
  EXPECT_THAT(Keep(Path()).report, HasSubstr("stored in"));
  EXPECT_FALSE(std::filesystem::is_symlink(Path()));
}

TEST_F(StoredCostsTest, UsesTablesIfMeasuringFails) {
  const StoredCosts costs = LoadOrMeasureCosts(Path(), "key", []() -> absl::StatusOr<CostRatios> {
    return absl::InternalError("no such kernel");
  });
  EXPECT_TRUE(costs.ratios.empty());
  EXPECT_THAT(costs.report, HasSubstr("no such kernel"));
  EXPECT_FALSE(std::filesystem::exists(Path()));
}

}  // namespace
}  // namespace crout::measured_costs_test
