// SPDX-License-Identifier: Apache-2.0

#include "server/observability/gpu/gpu_monitor.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "server/observability/metrics/metrics.h"
#include "tests/server/observability/fake_nvml.h"
#include "tests/server/scrape.h"
#include "tests/support/timing/eventually.h"

namespace crout::gpu_monitor_test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kPciBusId[] = "0000:5d:00.0";

class GpuMonitorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(CROUT_FAKE_NVML, RTLD_NOW);
    ASSERT_NE(library_, nullptr) << dlerror();
    Set({});
  }
  void TearDown() override { EXPECT_EQ(Function<FakeNvmlOpen>("crout_fake_nvml_open")(), 0); }

  void Set(const FakeNvmlState& state) { Function<FakeNvmlSet>("crout_fake_nvml_set")(&state); }
  void Raise(unsigned long long xid) { Function<FakeNvmlRaise>("crout_fake_nvml_raise")(xid); }

  // Waits until the reading of the monitor's last GPU satisfies `condition`. Returns this reading.
  static GpuReading Wait(const GpuMonitor& monitor,
                         const std::function<bool(const GpuReading&)>& condition) {
    std::optional<GpuReading> reading;
    EXPECT_TRUE(crout::testing::Eventually([&] {
      reading = monitor.last().back();
      return reading.has_value() && condition(*reading);
    }));
    return reading.value_or(GpuReading());
  }
  static GpuReading First(const GpuMonitor& monitor) {
    return Wait(monitor, [](const GpuReading&) { return true; });
  }

 private:
  template <class T>
  T* Function(const char* name) {
    return reinterpret_cast<T*>(dlsym(library_, name));
  }
  void* library_ = nullptr;
};

TEST_F(GpuMonitorTest, ConvertsTheDriversReadingsToBaseUnits) {
  const GpuMonitor monitor({{"host", ""}, {"cuda:0", kPciBusId}}, CROUT_FAKE_NVML);
  const GpuReading reading = First(monitor);
  EXPECT_FALSE(monitor.last()[0].has_value());  // the host has no driver
  EXPECT_DOUBLE_EQ(*reading.compute_utilization, 0.75);
  EXPECT_DOUBLE_EQ(*reading.memory_utilization, 0.2);
  EXPECT_EQ(*reading.memory_total_bytes, double{80ULL << 30});
  EXPECT_EQ(*reading.memory_used_bytes, double{30ULL << 30});
  EXPECT_DOUBLE_EQ(*reading.power_watts, 412.5);
  EXPECT_DOUBLE_EQ(*reading.power_limit_watts, 700);
  EXPECT_DOUBLE_EQ(*reading.temperature_celsius, 61);
  EXPECT_DOUBLE_EQ(*reading.slowdown_celsius, 87);
  EXPECT_DOUBLE_EQ(*reading.sm_clock_hertz, 1.98e9);
  EXPECT_DOUBLE_EQ(*reading.memory_clock_hertz, 2.619e9);
  EXPECT_DOUBLE_EQ(*reading.ecc_corrected, 3);
  EXPECT_DOUBLE_EQ(*reading.ecc_uncorrected, 1);
  EXPECT_DOUBLE_EQ(*reading.xid_errors, 0);
  EXPECT_DOUBLE_EQ(*reading.last_xid, 0);
  EXPECT_GE(reading.age_seconds, 0);
}

TEST_F(GpuMonitorTest, MissingReadingsAreOmitted) {
  Set({.reports_power = false, .reports_events = false});
  const GpuMonitor monitor({{"cuda:0", kPciBusId}}, CROUT_FAKE_NVML);
  const GpuReading reading = First(monitor);
  EXPECT_FALSE(reading.power_watts.has_value());
  EXPECT_FALSE(reading.energy_joules.has_value());  // the library does not define this function
  EXPECT_FALSE(reading.xid_errors.has_value());
  EXPECT_FALSE(reading.last_xid.has_value());
  EXPECT_TRUE(reading.power_limit_watts.has_value());
}

TEST_F(GpuMonitorTest, CountsXidErrors) {
  const GpuMonitor monitor({{"cuda:0", kPciBusId}}, CROUT_FAKE_NVML);
  First(monitor);
  Raise(31);
  Raise(79);
  const GpuReading reading =
      Wait(monitor, [](const GpuReading& reading) { return reading.xid_errors == 2; });
  EXPECT_EQ(reading.last_xid, 79);
}

TEST_F(GpuMonitorTest, ContinuesWithoutEvents) {
  Set({.reports_events = false});
  const GpuMonitor monitor({{"cuda:0", kPciBusId}}, CROUT_FAKE_NVML);
  First(monitor);
  Set({.reports_events = false, .temperature = 88});
  Wait(monitor, [](const GpuReading& reading) { return reading.temperature_celsius == 88; });
}

TEST_F(GpuMonitorTest, ALostGpuHasNoReadingsAndIsPolledAgain) {
  const GpuMonitor monitor({{"cuda:0", kPciBusId}}, CROUT_FAKE_NVML);
  First(monitor);
  Set({.lost = true});
  Wait(monitor, [](const GpuReading& reading) { return !reading.temperature_celsius.has_value(); });
  Set({});
  Wait(monitor, [](const GpuReading& reading) { return reading.temperature_celsius.has_value(); });
}

TEST_F(GpuMonitorTest, AMissingLibraryDriverOrGpuMeansNoReadings) {
  const auto absent = [](const std::string& pci_bus_id, const char* library) {
    auto nvml = Nvml::Load(library);
    return nvml.ok() ? std::string((*nvml)->Find(pci_bus_id).status().message())
                     : std::string(nvml.status().message());
  };
  EXPECT_EQ(absent(kPciBusId, "libno-such-nvml.so.1"),
            "cannot load libno-such-nvml.so.1: install the NVIDIA driver");
  EXPECT_THAT(absent(kPciBusId, "libm.so.6"), HasSubstr("is not NVML"));
  EXPECT_EQ(absent("0000:00:00.0", CROUT_FAKE_NVML), "no GPU at 0000:00:00.0: Not Found");
  EXPECT_EQ(absent(kPciBusId, CROUT_FAKE_NVML), "");
  Set({.init_result = 9});
  EXPECT_THAT(absent(kPciBusId, CROUT_FAKE_NVML), HasSubstr("Driver Not Loaded"));
  const GpuMonitor monitor({{"cuda:0", kPciBusId}}, CROUT_FAKE_NVML);
  EXPECT_FALSE(monitor.last().front().has_value());
}

// Returns the metrics of two devices. `reading` is the reading of the second.
std::string Scrape(const std::optional<GpuReading>& reading) {
  Metrics metrics({.devices = {{"host", {}, {}}, {"cuda:0", {}, {}}}, .cuda = "none"});
  metrics.SetStateSource([&] {
    ServerState state;
    state.devices.resize(2);
    state.devices[1].gpu = reading;
    return state;
  });
  return metrics.Scrape();
}

TEST(GpuMetricsTest, AReadingHasSeriesOfItsDevice) {
  GpuReading reading;
  reading.compute_utilization = 0.75;
  reading.memory_utilization = 0.2;
  reading.xid_errors = 2;
  reading.last_xid = 79;
  reading.age_seconds = 0.5;
  const std::string text = Scrape(reading);
  EXPECT_EQ(SampleOf(text, "crout_gpu_utilization_ratio{device=\"cuda:0\",kind=\"compute\"}"),
            0.75);
  EXPECT_EQ(SampleOf(text, "crout_gpu_utilization_ratio{device=\"cuda:0\",kind=\"memory\"}"), 0.2);
  EXPECT_EQ(SampleOf(text, "crout_gpu_xid_errors_total{device=\"cuda:0\"}"), 2);
  EXPECT_EQ(SampleOf(text, "crout_gpu_last_xid{device=\"cuda:0\"}"), 79);
  EXPECT_EQ(SampleOf(text, "crout_gpu_reading_age_seconds{device=\"cuda:0\"}"), 0.5);
  EXPECT_THAT(text, HasSubstr("# TYPE crout_gpu_xid_errors_total counter"));
  EXPECT_THAT(text, Not(HasSubstr("crout_gpu_power_watts")));
}

TEST(GpuMetricsTest, WithoutAGpuThereAreNoFamilies) {
  EXPECT_THAT(Scrape(std::nullopt), Not(HasSubstr("crout_gpu_")));
}

}  // namespace
}  // namespace crout::gpu_monitor_test
