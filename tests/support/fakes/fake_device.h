// SPDX-License-Identifier: Apache-2.0

// A fake device: computes with the methods of the host in memory of its own, which is limited and
// counted. A test can inject faults and hold operations.
#ifndef CROUT_TESTS_SUPPORT_FAKES_FAKE_DEVICE_H_
#define CROUT_TESTS_SUPPORT_FAKES_FAKE_DEVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/device.h"
#include "kernels/util/failpoint.h"
#include "tests/support/memory/counting_resource.h"
#include "tests/support/timing/gate.h"

namespace crout::testing {

struct FakeDeviceOptions {
  DeviceKind kind = DeviceKind::kCuda;
  std::string name = "cuda:0";
  size_t memory_bytes = size_t{64} << 20;
  size_t staging_bytes = size_t{64} << 20;
  size_t staging_block_bytes = size_t{256} << 10;  // longest span that an uploader reserves
  int parallelism = 2;
  int ranks = 0;  // processes of a group; 0: not a group
  EnumSet<DType> types = kAllTypes;
  bool has_sparse_ops = false;  // offers the host's SparseOps
  bool registers = true;        // offers Device::Register and Uploader::Send
  bool prepares = false;        // also registers a PreparingSolver
  double prepared_error = 0;    // relative error that the PreparingSolver adds to the last unknown
  double slowness = 1;          // predicted factorization time, divided by the host's prediction
  std::vector<std::string> slow_solvers = {};  // predicted solve time: a thousand times the host's
  int64_t stalls_at = 0;  // a factorization stands still after these columns; 0: never
  std::function<void(Catalogue&)> register_more = nullptr;  // adds the test's methods
};

// Offers the algorithms and solvers of the host device under the same names, a direct solver
// "gauss_jordan", and an out-of-core LU. With `prepares` it also offers "crout_solve". Thread-safe.
class FakeDevice final : public Device {
 public:
  explicit FakeDevice(const FakeDeviceOptions& options = {});
  ~FakeDevice() override;

  // Simulates a permanent device failure: healthy() returns false; Synchronize, CreateContext and
  // Commit of an upload fail with UNAVAILABLE.
  void BreakDown() { healthy_ = false; }

  // Hold a job inside Factor or Solve while closed.
  Gate& factor_gate() { return factor_gate_; }
  Gate& solve_gate() { return solve_gate_; }

  // Holds Uploader::Join, and so the job that waits for the upload, while closed.
  Gate& copy_gate() { return copy_gate_; }

  // Wedge simulates a GPU whose work never ends: it holds jobs, uploads, allocations and frees
  // until Recover.
  void Wedge();
  void Recover();

  // While uploads are held, Reserve of every uploader returns an empty span and stores its
  // `on_ready`. ReleaseUploads calls each stored `on_ready` once, on the calling thread.
  void HoldUploads();
  void ReleaseUploads();
  int waiting_uploads() const;

  // The destination of an upload is in use from Join until the joined context synchronizes.
  // freed_in_use() of the counting memory counts destinations freed before that.
  CountingResource& counting_memory() { return memory_; }
  CountingResource& counting_staging_memory() { return staging_; }
  int live_contexts() const { return live_contexts_; }
  int live_uploaders() const { return live_uploaders_; }
  int live_registrations() const { return live_registrations_; }
  // Bytes that uploads copied from registered memory.
  size_t direct_bytes() const { return direct_bytes_; }

  const DeviceInfo& info() const override { return info_; }
  bool healthy() const override { return healthy_ && Failpoint("fake_device.healthy").ok(); }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override;
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return staging_; }
  DeviceMemoryStats memory_stats() const override {
    (void)Failpoint("fake_device.memory_stats");
    return {.pool_used_bytes = memory_.live_bytes()};
  }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> destination) override;
  absl::StatusOr<std::unique_ptr<HostRegistration>> Register(std::span<std::byte> memory) override;
  const Catalogue& catalogue() const override { return catalogue_; }
  absl::StatusOr<std::unique_ptr<OutOfCoreLu>> MakeOutOfCoreLu(size_t device_bytes) override;

 private:
  class Context;
  class Registration;
  class StagedUploader;

  // Stores `on_ready` and returns true if uploads are held. Otherwise stores nothing and returns
  // false.
  bool WaitForUploads(absl::AnyInvocable<void()>& on_ready);

  // Constant after construction.
  const size_t staging_block_bytes_;
  const bool registers_;
  const double slowness_;
  const int64_t stalls_at_;
  const DeviceInfo info_;
  const std::unique_ptr<Device> host_;
  Catalogue catalogue_;

  CountingResource memory_;
  CountingResource staging_;
  Gate factor_gate_;
  Gate solve_gate_;
  Gate copy_gate_;
  std::atomic<bool> healthy_{true};
  std::atomic<int> live_contexts_{0};
  std::atomic<int> live_uploaders_{0};
  std::atomic<int> live_registrations_{0};
  std::atomic<size_t> direct_bytes_{0};

  mutable Mutex mutex_;
  bool uploads_held_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<absl::AnyInvocable<void()>> waiting_uploads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace crout::testing

#endif  // CROUT_TESTS_SUPPORT_FAKES_FAKE_DEVICE_H_
