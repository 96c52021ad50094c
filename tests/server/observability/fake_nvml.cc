// SPDX-License-Identifier: Apache-2.0

#include "tests/server/observability/fake_nvml.h"

#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>

namespace {

constexpr int kSuccess = 0, kNotSupported = 3, kNotFound = 6, kTimeout = 10, kLost = 15;

std::mutex mutex;
std::condition_variable raised;
crout::FakeNvmlState state;
std::deque<unsigned long long> xids;
int open_libraries = 0;
bool watched = false;
int gpu, events;  // their addresses serve as handles

struct Utilization {
  unsigned gpu, memory;
};
struct Memory {
  unsigned long long total, free, used;
};
struct Event {
  void* device;
  unsigned long long type, data;
  unsigned gpu_instance, compute_instance;
};

// Answers a query about the GPU. Returns an error if `device` is not its handle or the GPU is lost.
template <class Number>
int Answer(void* device, Number* out, Number value) {
  const std::lock_guard lock(mutex);
  if (device != &gpu) return 2;
  if (state.lost) return kLost;
  *out = value;
  return kSuccess;
}

}  // namespace

extern "C" {

void crout_fake_nvml_set(const crout::FakeNvmlState* next) {
  const std::lock_guard lock(mutex);
  state = *next;
}
void crout_fake_nvml_raise(unsigned long long xid) {
  const std::lock_guard lock(mutex);
  xids.push_back(xid);
  raised.notify_all();
}
int crout_fake_nvml_open() {
  const std::lock_guard lock(mutex);
  return open_libraries;
}

int nvmlInit_v2() {
  const std::lock_guard lock(mutex);
  if (state.init_result == kSuccess) ++open_libraries;
  return state.init_result;
}
int nvmlShutdown() {
  const std::lock_guard lock(mutex);
  --open_libraries;
  return kSuccess;
}
const char* nvmlErrorString(int result) {
  return result == kNotFound ? "Not Found" : result == 9 ? "Driver Not Loaded" : "Some Error";
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* pci_bus_id, void** device) {
  if (std::strcmp(pci_bus_id, "0000:5d:00.0") != 0) return kNotFound;
  *device = &gpu;
  return kSuccess;
}
int nvmlDeviceGetUtilizationRates(void* device, Utilization* shares) {
  return Answer(device, shares, {75, 20});
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  return Answer(device, memory, {80ULL << 30, 50ULL << 30, 30ULL << 30});
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* milliwatts) {
  {
    const std::lock_guard lock(mutex);
    if (!state.reports_power) return kNotSupported;
  }
  return Answer(device, milliwatts, 412500U);
}
int nvmlDeviceGetEnforcedPowerLimit(void* device, unsigned* milliwatts) {
  return Answer(device, milliwatts, 700000U);
}
// nvmlDeviceGetTotalEnergyConsumption is not defined, as in the library of an old driver.
int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* celsius) {
  if (sensor != 0) return kNotSupported;
  unsigned temperature = 0;
  {
    const std::lock_guard lock(mutex);
    temperature = state.temperature;
  }
  return Answer(device, celsius, temperature);
}
int nvmlDeviceGetTemperatureThreshold(void* device, int threshold, unsigned* celsius) {
  return Answer(device, celsius, threshold == 1 ? 87U : 92U);
}
int nvmlDeviceGetClockInfo(void* device, int clock, unsigned* megahertz) {
  return Answer(device, megahertz, clock == 1 ? 1980U : clock == 2 ? 2619U : 0U);
}
int nvmlDeviceGetTotalEccErrors(void* device, int kind, int counter, unsigned long long* errors) {
  return Answer(device, errors, counter != 0 ? 1000ULL : kind == 0 ? 3ULL : 1ULL);
}
int nvmlEventSetCreate(void** set) {
  *set = &events;
  return kSuccess;
}
int nvmlEventSetFree(void* /*set*/) {
  const std::lock_guard lock(mutex);
  watched = false;
  return kSuccess;
}
int nvmlDeviceRegisterEvents(void* device, unsigned long long types, void* set) {
  const std::lock_guard lock(mutex);
  if (!state.reports_events || types != 8 || set != &events || device != &gpu) return kNotSupported;
  watched = true;
  return kSuccess;
}
int nvmlEventSetWait_v2(void* /*set*/, Event* event, unsigned milliseconds) {
  std::unique_lock lock(mutex);
  if (state.lost) return kLost;
  raised.wait_until(lock,
                    std::chrono::system_clock::now() + std::chrono::milliseconds(milliseconds),
                    [] { return watched && !xids.empty(); });
  if (!watched || xids.empty()) return kTimeout;
  *event = {&gpu, 8, xids.front(), 0, 0};
  xids.pop_front();
  return kSuccess;
}

}  // extern "C"
