// A device that factors and solves: the host, or one CUDA GPU.
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

namespace crout {

enum class DeviceKind : uint8_t { kHost, kCuda };

struct DeviceInfo {
  DeviceKind kind = DeviceKind::kHost;
  std::string name;           // "host", "cuda:0": in replies, labels and on the command line
  std::string description;    // "NVIDIA H100 80GB HBM3", or the processor's
  uint64_t memory_bytes = 0;  // of the device, as the driver or the system says
  int parallelism = 1;        // jobs that can run side by side: streams, or cores
  EnumSet<DType> types = kRealTypes;  // of the matrices and right-hand sides that it takes
  bool has_sparse_ops = false;        // whether matrices may stay sparse there (sparse_ops.h)
  std::string pci_bus_id = {};        // of a GPU, "0000:5d:00.0": its driver knows it by this
};

// Bytes of a device's memory, at one moment.
struct DeviceMemoryStats {
  size_t pool_used_bytes = 0;    // of the device's pool: handed out
  size_t pool_cached_bytes = 0;  // of the pool: kept for later jobs
  size_t driver_used_bytes = 0;  // of the device, by any process, as its driver or the system says
};

// Moves a stream of bytes from the network into a buffer of the device, while it arrives. One
// upload, one thread at a time. Only Join blocks.
class Uploader {
 public:
  virtual ~Uploader() = default;

  // Where the next bytes go: a span in host memory, never longer than what is left to send. Empty
  // when all staging blocks are still being copied; then `on_ready` is called once, from any
  // thread, when Reserve would succeed. (The host device writes the destination itself: always
  // ready.)
  virtual std::span<std::byte> Reserve(absl::AnyInvocable<void()> on_ready) = 0;

  // The first `bytes` bytes of the span last reserved were written.
  virtual absl::Status Commit(size_t bytes) = 0;

  // No more bytes are at hand for now: a device short of staging memory sends what it has, so that
  // an upload which pauses holds none that others could use.
  virtual absl::Status Pause() { return absl::OkStatus(); }

  // All bytes were committed: waits for those whose copy is still under way, at most the staging
  // blocks of one upload, so that a job can tell that wait from its own time. Work enqueued on
  // `context` from now on sees all of them.
  virtual absl::Status Join(ExecutionContext& context) = 0;

  // Destroying an uploader before Join leaves the destination undefined, and is safe only once
  // copies in flight ended; the destructor waits for them (microseconds: at most the staging
  // blocks of one upload).
};

// Thread-safe. Outlives its contexts, buffers and uploaders.
class Device {
 public:
  virtual ~Device() = default;

  virtual const DeviceInfo& info() const = 0;

  // False once the device met an error that it cannot recover from (a sticky CUDA error): fence it.
  virtual bool healthy() const = 0;

  // Expensive (stream, vendor handles, first-use initialisation): made at start and pooled.
  virtual absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() = 0;

  // Memory that this device computes in, and host memory that it copies from and to without an
  // intermediate step (pinned for CUDA). For the host device both are one.
  virtual MemoryResource& memory() = 0;
  virtual MemoryResource& staging_memory() = 0;

  // For gauges; zeros from a device that keeps no pool.
  virtual DeviceMemoryStats memory_stats() const { return {}; }

  // `destination` is device memory and outlives the uploader.
  virtual absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(
      std::span<std::byte> destination) = 0;

  // Its methods, the same from construction on: at least an algorithm, and a solver for each unit
  // diagonal that its algorithms leave.
  virtual const Catalogue& catalogue() const = 0;
  const auto& algorithms() const { return catalogue().algorithms; }
  const auto& solvers() const { return catalogue().solvers; }
  const auto& direct_solvers() const { return catalogue().direct_solvers; }
  // Null where the device reduces no matrices.
  const EchelonReducer* echelon_reducer() const { return catalogue().echelon_reducer.get(); }
  // Null where the device takes no batches.
  const BatchLu* batch_lu() const { return catalogue().batch_lu.get(); }
};

}  // namespace crout

#endif  // CROUT_KERNELS_DEVICE_H_
