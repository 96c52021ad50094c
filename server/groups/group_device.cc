// SPDX-License-Identifier: Apache-2.0

#include "server/groups/group_device.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/costs/trial_problem.h"
#include "kernels/host/device/cost_model.h"
#include "kernels/host/device/host_context.h"
#include "kernels/host/device/host_info.h"
#include "kernels/memory/caching_resource.h"
#include "kernels/util/helper_program.h"
#include "kernels/util/status_macros.h"
#include "server/groups/cusolvermp.h"
#include "server/groups/gpu_copies.h"
#include "server/groups/mumps.h"
#include "server/groups/scalapack.h"
#include "server/groups/shared_arena.h"

namespace crout {
namespace {

// Address space of the shared memory, in multiples of the machine's memory: enough that free ranges
// between blocks do not limit it.
constexpr size_t kArenaShare = 16;
// Limit on freed memory kept for later jobs, as of the host device.
constexpr size_t kCachedBytes = size_t{2} << 30;
constexpr int64_t kTrialOrder = 768;
// Assumed speed of a rank that has not joined yet.
constexpr double kRankFlopsPerSecond = 1e10;

// Gives a CachingResource the arena, which it shares with the methods.
class ArenaBlocks final : public BlockSource {
 public:
  explicit ArenaBlocks(SharedArena& arena) : arena_(arena) {}
  absl::StatusOr<void*> Acquire(size_t bytes) override { return arena_.Acquire(bytes); }
  void Release(void* block, size_t bytes) override { arena_.Release(block, bytes); }

 private:
  SharedArena& arena_;
};

// Lets the ranks forget the factors in memory that is freed.
class GroupMemory final : public CachingResource {
 public:
  GroupMemory(SharedArena& arena, RankGroup& group, GpuCopies& copies)
      : CachingResource(std::make_unique<ArenaBlocks>(arena), kCachedBytes),
        group_(group),
        copies_(copies) {}

 protected:
  void DoDeallocate(void* data, size_t bytes) override {
    for (const uint64_t factor : copies_.Remove(data, bytes)) group_.Forget(factor);
    CachingResource::DoDeallocate(data, bytes);
  }

 private:
  RankGroup& group_;
  GpuCopies& copies_;
};

class HostGroupDevice final : public GroupDevice {
 public:
  HostGroupDevice(const DeviceInfo& info, std::shared_ptr<host::Executor> executor,
                  std::unique_ptr<SharedArena> arena, std::unique_ptr<RankGroup> group)
      : info_(info),
        executor_(std::move(executor)),
        arena_(std::move(arena)),
        group_(std::move(group)),
        memory_(*arena_, *group_, copies_) {
    AddScalapack(*group_, *arena_, speed_, catalogue_);
    AddMumps(*group_, *arena_, speed_, catalogue_);
    if (group_->HasMethod("cusolvermp")) {
      AddCusolvermp(*group_, *arena_, copies_, *executor_, catalogue_);
    }
  }

  // Times a factorization, after one that starts the ranks' libraries.
  absl::Status MeasureSpeed() {
    CROUT_ASSIGN_OR_RETURN(const std::unique_ptr<ExecutionContext> context, CreateContext());
    const LuAlgorithm* const algorithm = catalogue_.algorithms.front().get();
    CROUT_ASSIGN_OR_RETURN(
        TrialProblem problem,
        TrialProblem::Create(*this, DType::kFloat64, kTrialOrder, {&algorithm, 1}));
    CROUT_RETURN_IF_ERROR(problem.TimeFactor(*context, *algorithm).status());
    CROUT_ASSIGN_OR_RETURN(const double seconds, problem.TimeFactor(*context, *algorithm));
    speed_.flops_per_second = host::LuFlops(kTrialOrder) / seconds;
    return absl::OkStatus();
  }

  // For ranks that may join later.
  void AssumeSpeed() { speed_.flops_per_second = kRankFlopsPerSecond * info_.ranks; }

  const DeviceInfo& info() const override { return info_; }
  // A lost group forms again.
  bool healthy() const override { return true; }
  absl::StatusOr<std::unique_ptr<ExecutionContext>> CreateContext() override {
    return host::MakeContext(*this, *executor_);
  }
  MemoryResource& memory() override { return memory_; }
  MemoryResource& staging_memory() override { return memory_; }
  DeviceMemoryStats memory_stats() const override {
    const CachingResource::Stats pool = memory_.stats();
    return {pool.bytes_in_use, pool.bytes_cached, host::UsedMemoryBytes()};
  }
  absl::StatusOr<std::unique_ptr<Uploader>> StartUpload(std::span<std::byte> destination) override {
    return host::MakeUploader(destination);
  }
  const Catalogue& catalogue() const override { return catalogue_; }
  RankGroup& group() override { return *group_; }

 private:
  const DeviceInfo info_;
  const std::shared_ptr<host::Executor> executor_;
  const std::unique_ptr<SharedArena> arena_;
  const std::unique_ptr<RankGroup> group_;
  GpuCopies copies_;
  GroupMemory memory_;
  GroupSpeed speed_;
  Catalogue catalogue_;
};

std::string Describe(const GroupSpec& spec) {
  if (!spec.join.empty()) return absl::StrCat(spec.ranks, " ranks on machines that join");
  const std::string ranks = absl::StrCat(spec.ranks, " ranks on ", host::ProcessorName());
  if (spec.gpus.empty()) return ranks;
  return absl::StrCat(ranks, " with the GPUs ", absl::StrJoin(spec.gpus, ", "));
}

}  // namespace

absl::StatusOr<std::unique_ptr<GroupDevice>> MakeGroupDevice(
    const GroupSpec& spec, std::shared_ptr<host::Executor> executor, const RankSecurity& security) {
  constexpr char kProgram[] = "crout-rank";
  const bool joined = !spec.join.empty();
  RankGroupOptions options;
  options.spec = spec;
  options.security = security;
  options.program = joined ? std::string() : FindHelperProgram(kProgram);
  if (options.program.empty() && !joined) {
    return absl::NotFoundError(absl::StrCat(
        "group ", spec.name, " needs the program ", kProgram,
        ", which is not installed. Build Crout with ScaLAPACK and Open MPI (CROUT_SCALAPACK=ON)"));
  }
  options.threads = std::max(1, executor->budget().total() / spec.ranks);
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<SharedArena> arena,
                         SharedArena::Create(kArenaShare * host::SystemMemoryBytes()));
  CROUT_ASSIGN_OR_RETURN(std::unique_ptr<RankGroup> group, RankGroup::Start(options, *arena));
  const DeviceInfo info = {.kind = DeviceKind::kHost,
                           .name = absl::StrCat("group:", spec.name),
                           .description = Describe(spec),
                           .memory_bytes = host::SystemMemoryBytes(),
                           .parallelism = 1,
                           .types = kAllTypes,
                           .has_sparse_ops = true,
                           .ranks = spec.ranks};
  auto device = std::make_unique<HostGroupDevice>(info, std::move(executor), std::move(arena),
                                                  std::move(group));
  if (joined) {
    device->AssumeSpeed();
  } else {
    CROUT_RETURN_IF_ERROR(device->MeasureSpeed());
  }
  return device;
}

}  // namespace crout
