// SPDX-License-Identifier: Apache-2.0

#include "server/observability/gpu/nvml.h"

#include <dlfcn.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Types and values of NVML's ABI, which NVIDIA keeps stable across versions. Source: the NVML API
// reference manual, https://docs.nvidia.com/deploy/nvml-api/.
using Device = void*;
using EventSet = void*;
enum Return : int { kSuccess = 0, kTimeout = 10 };
enum Sensor : int { kGpuSensor = 0 };
enum Threshold : int { kSlowdown = 1 };
enum Clock : int { kSmClock = 1, kMemoryClock = 2 };
enum EccError : int { kCorrected = 0, kUncorrected = 1 };
enum EccCounter : int { kSinceDriverLoaded = 0 };
constexpr unsigned long long kXidEvent = 8;

// Both in per cent.
struct Utilization {
  unsigned gpu;
  unsigned memory;
};
struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct Event {
  Device device;
  unsigned long long type;
  unsigned long long data;  // for kXidEvent: the number of the Xid error
  unsigned gpu_instance;
  unsigned compute_instance;
};

constexpr double kMilli = 1e-3;
constexpr double kMega = 1e6;
constexpr double kPercent = 1e-2;

}  // namespace

// Functions of the library. Those after `find` may be null.
struct NvmlFunctions {
  Return (*init)() = nullptr;
  Return (*shutdown)() = nullptr;
  const char* (*describe)(Return) = nullptr;
  Return (*find)(const char*, Device*) = nullptr;
  Return (*utilization)(Device, Utilization*) = nullptr;
  Return (*memory)(Device, Memory*) = nullptr;
  Return (*power)(Device, unsigned* milliwatts) = nullptr;
  Return (*power_limit)(Device, unsigned* milliwatts) = nullptr;
  Return (*energy)(Device, unsigned long long* millijoules) = nullptr;
  Return (*temperature)(Device, Sensor, unsigned* celsius) = nullptr;
  Return (*temperature_threshold)(Device, Threshold, unsigned* celsius) = nullptr;
  Return (*clock)(Device, Clock, unsigned* megahertz) = nullptr;
  Return (*ecc_errors)(Device, EccError, EccCounter, unsigned long long* errors) = nullptr;
  Return (*create_events)(EventSet*) = nullptr;
  Return (*free_events)(EventSet) = nullptr;
  Return (*register_events)(Device, unsigned long long types, EventSet) = nullptr;
  Return (*wait_for_event)(EventSet, Event*, unsigned milliseconds) = nullptr;

  absl::Status ToStatus(Return result) const {
    if (result == kSuccess) return absl::OkStatus();
    return absl::UnavailableError(describe(result));
  }
};

namespace {

template <class Function>
void LoadFunction(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
}

std::unique_ptr<NvmlFunctions> FunctionsOf(void* library) {
  auto functions = std::make_unique<NvmlFunctions>();
  LoadFunction(library, "nvmlInit_v2", &functions->init);
  LoadFunction(library, "nvmlShutdown", &functions->shutdown);
  LoadFunction(library, "nvmlErrorString", &functions->describe);
  LoadFunction(library, "nvmlDeviceGetHandleByPciBusId_v2", &functions->find);
  LoadFunction(library, "nvmlDeviceGetUtilizationRates", &functions->utilization);
  LoadFunction(library, "nvmlDeviceGetMemoryInfo", &functions->memory);
  LoadFunction(library, "nvmlDeviceGetPowerUsage", &functions->power);
  LoadFunction(library, "nvmlDeviceGetEnforcedPowerLimit", &functions->power_limit);
  LoadFunction(library, "nvmlDeviceGetTotalEnergyConsumption", &functions->energy);
  LoadFunction(library, "nvmlDeviceGetTemperature", &functions->temperature);
  LoadFunction(library, "nvmlDeviceGetTemperatureThreshold", &functions->temperature_threshold);
  LoadFunction(library, "nvmlDeviceGetClockInfo", &functions->clock);
  LoadFunction(library, "nvmlDeviceGetTotalEccErrors", &functions->ecc_errors);
  LoadFunction(library, "nvmlEventSetCreate", &functions->create_events);
  LoadFunction(library, "nvmlEventSetFree", &functions->free_events);
  LoadFunction(library, "nvmlDeviceRegisterEvents", &functions->register_events);
  LoadFunction(library, "nvmlEventSetWait_v2", &functions->wait_for_event);
  return functions;
}

// Returns the number that `function` reports, multiplied by `unit`. Returns nothing if the function
// is missing or fails.
template <class Number, class Function, class... Arguments>
std::optional<double> Query(double unit, Function function, Arguments... arguments) {
  Number number = 0;
  if (function == nullptr || function(arguments..., &number) != kSuccess) return std::nullopt;
  return static_cast<double>(number) * unit;
}

}  // namespace

Nvml::Nvml(std::unique_ptr<const NvmlFunctions> functions) : functions_(std::move(functions)) {}

Nvml::~Nvml() {
  if (events_ != nullptr) functions_->free_events(events_);
  functions_->shutdown();
}

absl::StatusOr<std::unique_ptr<Nvml>> Nvml::Load(const std::string& file) {
  // The library is never unloaded, because NVML may have started threads.
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    return absl::UnavailableError(
        absl::StrCat("cannot load ", file, ": install the NVIDIA driver"));
  }
  auto functions = FunctionsOf(library);
  if (functions->init == nullptr || functions->shutdown == nullptr ||
      functions->describe == nullptr || functions->find == nullptr) {
    return absl::UnavailableError(
        absl::StrCat(file, " is not NVML or is too old: install a current driver"));
  }
  if (const Return result = functions->init(); result != kSuccess) {
    return absl::UnavailableError(absl::StrCat(file, ": ", functions->describe(result)));
  }
  return std::unique_ptr<Nvml>(new Nvml(std::move(functions)));
}

absl::StatusOr<Nvml::Gpu> Nvml::Find(const std::string& pci_bus_id) const {
  Device device = nullptr;
  const Return result = functions_->find(pci_bus_id.c_str(), &device);
  if (result == kSuccess) return device;
  return absl::UnavailableError(
      absl::StrCat("no GPU at ", pci_bus_id, ": ", functions_->describe(result)));
}

GpuReading Nvml::Read(Gpu gpu) const {
  GpuReading reading;
  if (Utilization shares = {};
      functions_->utilization != nullptr && functions_->utilization(gpu, &shares) == kSuccess) {
    reading.compute_utilization = shares.gpu * kPercent;
    reading.memory_utilization = shares.memory * kPercent;
  }
  if (Memory memory = {};
      functions_->memory != nullptr && functions_->memory(gpu, &memory) == kSuccess) {
    reading.memory_total_bytes = static_cast<double>(memory.total);
    reading.memory_used_bytes = static_cast<double>(memory.used);
  }
  const NvmlFunctions& functions = *functions_;
  reading.power_watts = Query<unsigned>(kMilli, functions.power, gpu);
  reading.power_limit_watts = Query<unsigned>(kMilli, functions.power_limit, gpu);
  reading.energy_joules = Query<unsigned long long>(kMilli, functions.energy, gpu);
  reading.temperature_celsius = Query<unsigned>(1, functions.temperature, gpu, kGpuSensor);
  reading.slowdown_celsius = Query<unsigned>(1, functions.temperature_threshold, gpu, kSlowdown);
  reading.sm_clock_hertz = Query<unsigned>(kMega, functions.clock, gpu, kSmClock);
  reading.memory_clock_hertz = Query<unsigned>(kMega, functions.clock, gpu, kMemoryClock);
  const auto ecc = [&](EccError kind) {
    return Query<unsigned long long>(1, functions.ecc_errors, gpu, kind, kSinceDriverLoaded);
  };
  reading.ecc_corrected = ecc(kCorrected);
  reading.ecc_uncorrected = ecc(kUncorrected);
  return reading;
}

absl::Status Nvml::WatchXids(Gpu gpu) {
  const NvmlFunctions& functions = *functions_;
  if (functions.create_events == nullptr || functions.free_events == nullptr ||
      functions.register_events == nullptr || functions.wait_for_event == nullptr) {
    return absl::UnimplementedError("this version of NVML has no events");
  }
  if (events_ == nullptr)
    CROUT_RETURN_IF_ERROR(functions.ToStatus(functions.create_events(&events_)));
  return functions.ToStatus(functions.register_events(gpu, kXidEvent, events_));
}

absl::StatusOr<std::optional<Nvml::XidEvent>> Nvml::WaitForXid(absl::Duration timeout) {
  Event event = {};
  const auto milliseconds = static_cast<unsigned>(absl::ToInt64Milliseconds(timeout));
  const Return result = functions_->wait_for_event(events_, &event, milliseconds);
  if (result == kTimeout) return std::nullopt;
  CROUT_RETURN_IF_ERROR(functions_->ToStatus(result));
  if (event.type != kXidEvent) return std::nullopt;
  return XidEvent{event.device, event.data};
}

}  // namespace crout
