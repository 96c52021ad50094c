// SPDX-License-Identifier: Apache-2.0

// A device that factors and solves: the host, one CUDA GPU, or a group of processes.
#ifndef CROUT_KERNELS_DEVICE_H_
#define CROUT_KERNELS_DEVICE_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "kernels/catalogue.h"
#include "kernels/execution_context.h"
#include "kernels/memory.h"
#include "kernels/out_of_core_lu.h"

namespace crout {

enum class DeviceKind : uint8_t { kHost, kCuda };

struct DeviceInfo {
  DeviceKind kind = DeviceKind::kHost;
  // "host", "cuda:0", "cuda:0+host", "group:NAME": used in replies, labels and on the command line.
  std::string name;
  std::string description;            // "NVIDIA H100 80GB HBM3", or the CPU model
  uint64_t memory_bytes = 0;          // total memory, as reported by the driver or the system
  int parallelism = 1;                // jobs that can run concurrently: streams, or cores
  EnumSet<DType> types = kRealTypes;  // supported element types of matrices and right-hand sides
  bool has_sparse_ops = false;        // matrices may be stored sparse (sparse_ops.h)
  std::string pci_bus_id = {};        // GPUs only: "0000:5d:00.0", the driver's identifier
  int ranks = 0;                      // processes of a group; 0: not a group
  // The GPU that factors matrices in the memory of this device (out_of_core_device.h); "": none.
  std::string factors_on = {};

  // Whether the device runs one job at a time, whatever the number of streams that is requested.
  bool runs_single_jobs() const { return ranks > 0 || !factors_on.empty(); }
};

// Memory use of a device at one moment, in bytes.
struct DeviceMemoryStats {
  size_t pool_used_bytes = 0;    // allocated from the device's pool
  size_t pool_cached_bytes = 0;  // free in the pool, kept for later jobs
  size_t driver_used_bytes = 0;  // used by all processes, as reported by the driver or system
};

// Copies a byte stream from the network to a device buffer while the stream arrives. One upload;
// used by one thread at a time. Only Join and the destructor block.
//
// Destroying an uploader before Join leaves the destination undefined. The destructor waits for
// copies in flight: microseconds, at most the staging blocks of one upload.
class Uploader {
 public:
  virtual ~Uploader() = default;

  // Returns host memory for the next bytes, never longer than the remaining upload. Returns an
  // empty span while all staging blocks are being copied; `on_ready` is then called once, from any
  // thread, when Reserve would succeed. The host device returns the destination itself and is
  // always ready.
  virtual std::span<std::byte> Reserve(absl::AnyInvocable<void()> on_ready) = 0;

  // Submits the first `bytes` bytes of the last reserved span, which the caller has written.
  virtual absl::Status Commit(size_t bytes) = 0;

  // Signals that no more bytes are available for now. A device that is short of staging memory
  // copies the bytes it holds, so that a paused upload does not occupy staging blocks.
  virtual absl::Status Pause() { return absl::OkStatus(); }

  // Waits for outstanding copies after all bytes were committed: at most the staging blocks of one
  // upload. Work enqueued on `context` afterwards sees all bytes. A separate call, so that a job
  // can time this wait apart from its own work.
  virtual absl::Status Join(ExecutionContext& context) = 0;

  // Enqueues the copy of the next bytes from registered memory (Device::Register), without staging
  // memory. The bytes must stay there until Join() or the destructor has returned. Returns false,
  // without an effect, if this device does not do so.
  virtual absl::StatusOr<bool> Send(std::span<const std::byte> registered) {
    (void)registered;
    return false;
  }
};

// Ends the registration of host memory on destruction, which may take long. The memory must outlive
// it.
class HostRegistration {
 public:
  virtual ~HostRegistration() = default;
};

// Thread-safe. Outlives its contexts, buffers, uploaders, registrations and out-of-core LUs.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // Returns false after an unrecoverable error, such as a sticky CUDA error. The caller must then
  // fence the device.
  virtual bool healthy() const = 0;

  // Creates a context. Expensive (stream, vendor handles, first-use initialization): contexts are
  // created at start and pooled.
  virtual absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() = 0;

  // Device memory for computation, and host memory for direct transfers to and from the device
  // (pinned memory for CUDA). Both are the same resource on the host device.
  virtual MemoryResource& memory() = 0;
  virtual MemoryResource& staging_memory() = 0;

  // Memory statistics for gauges. Zero for a device without a pool.
  virtual DeviceMemoryStats memory_stats() const { return {}; }

  // Starts an upload to `destination`, which is device memory and outlives the uploader.
  virtual absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(
      std::span<std::byte> destination) = 0;

  // Methods of this device, fixed at construction: at least one algorithm, and a solver for each
  // unit diagonal that its algorithms produce.
  virtual const Catalogue& catalogue() const = 0;

  // Registers host memory of this process for direct copies to all devices of this kind
  // (Uploader::Send). Slow, because the operating system pins the pages. Null if the device needs
  // no registration.
  virtual absl::StatusOr<std::unique_ptr<HostRegistration>> Register(std::span<std::byte> memory) {
    (void)memory;
    return nullptr;
  }

  // Creates an LU factorization of matrices in staging_memory(). It allocates `device_bytes` of
  // device memory now, and frees them when it is destroyed. RESOURCE_EXHAUSTED if there are fewer.
  virtual absl::StatusOr<std::unique_ptr<OutOfCoreLu>> MakeOutOfCoreLu(size_t device_bytes) {
    (void)device_bytes;
    return absl::UnimplementedError(info().name + " has no out-of-core LU");
  }

  const auto& algorithms() const { return catalogue().algorithms; }
  const auto& solvers() const { return catalogue().solvers; }
  const auto& direct_solvers() const { return catalogue().direct_solvers; }
  // Null if the device has no echelon reducer.
  const EchelonReducer* echelon_reducer() const { return catalogue().echelon_reducer.get(); }
  // Null if the device does not support batches.
  const BatchLu* batch_lu() const { return catalogue().batch_lu.get(); }
};

}  // namespace crout

#endif  // CROUT_KERNELS_DEVICE_H_
