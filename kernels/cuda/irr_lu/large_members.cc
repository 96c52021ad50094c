// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/irr_lu/large_members.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/device/complex.h"
#include "kernels/cuda/device/cuda_status.h"
#include "kernels/util/status_macros.h"

namespace crout::cuda {
namespace {

constexpr int32_t kSmallest = 2048;
// Measured on an H100: with 4 streams, 16 members of order 4096 to 6144 take 1.04 times as long as
// with 16, and 64 members of order 2048 to 3072 take 1.25 times as long.
constexpr size_t kMaxConcurrent = 8;
constexpr size_t kAlignment = 256;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

int64_t ElementsOf(const BatchExtent& a) { return static_cast<int64_t>(a.bytes / SizeOf(a.dtype)); }

double OperationsOf(const BatchMember& member) {
  const double n = member.diagonal();
  return n * n * (std::max(member.rows, member.cols) - n / 3);
}

// The work of one queue: some of the members, one after the other.
class LargeMembersQueue {
 public:
  LargeMembersQueue(const LuStreams& streams, const LuPanelKernels& kernels,
                    const LargeMembersBatch& batch, std::span<std::byte> workspace,
                    const StopRequested& stop)
      : streams_(streams), kernels_(kernels), batch_(batch), workspace_(workspace), stop_(stop) {}

  // Appends member order[k] to the queue's work.
  void Add(size_t k) {
    members_.push_back(k);
    operations_ += OperationsOf(Member(k));
  }
  double operations() const { return operations_; }
  bool done() const { return next_ == members_.size(); }

  // Enqueues the next panel. Call only if not done().
  absl::Status Advance() {
    if (lu_ == nullptr) CROUT_RETURN_IF_ERROR(Start());
    CROUT_RETURN_IF_ERROR(lu_->Advance());
    return lu_->done() ? Finish() : absl::OkStatus();
  }
  // Later work on the queue's main stream follows everything enqueued so far.
  absl::Status Join() { return streams_.ahead.Join(); }

 private:
  const BatchMember& Member(size_t k) const { return batch_.on_host[batch_.order[k]]; }

  absl::Status Start() {
    const BatchMember& member = Member(members_[next_]);
    const DType dtype = batch_.a.extent.dtype;
    CROUT_ASSIGN_OR_RETURN(
        lu_, DispatchDevice(dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          const MatrixView<T> matrix = {reinterpret_cast<T*>(batch_.a.data) + member.offset,
                                        member.rows, member.cols, member.ld};
          return MakePanelwiseCroutLu(streams_, kernels_, LuBlocking::For(dtype, member.diagonal()),
                                      matrix, batch_.factors.ipiv + member.first_diagonal,
                                      workspace_, stop_);
        }));
    return absl::OkStatus();
  }

  absl::Status Finish() {
    CROUT_RETURN_IF_CUDA_ERROR(cudaMemcpyAsync(batch_.factors.info + batch_.order[members_[next_]],
                                               CroutLuInfo(batch_.a.extent.dtype, workspace_),
                                               sizeof(int32_t), cudaMemcpyDeviceToDevice,
                                               streams_.main.stream));
    lu_.reset();
    ++next_;
    return absl::OkStatus();
  }

  const LuStreams streams_;
  const LuPanelKernels& kernels_;
  const LargeMembersBatch& batch_;
  const std::span<std::byte> workspace_;
  const StopRequested& stop_;
  std::vector<size_t> members_;
  double operations_ = 0;
  size_t next_ = 0;                  // index in members_
  std::unique_ptr<PanelwiseLu> lu_;  // factorization of that member, once begun
};

// Assigns the members in descending size, each to the queue with the least work.
void Distribute(size_t members, std::span<LargeMembersQueue> queues) {
  for (size_t k = 0; k < members; ++k) {
    std::min_element(queues.begin(), queues.end(), [](const auto& a, const auto& b) {
      return a.operations() < b.operations();
    })->Add(k);
  }
}

// Round-robin, so that their launch buffers fill evenly even if each holds few launches.
absl::Status AdvanceAll(std::span<LargeMembersQueue> queues) {
  for (bool any = true; any;) {
    any = false;
    for (LargeMembersQueue& queue : queues) {
      if (queue.done()) continue;
      any = true;
      CROUT_RETURN_IF_ERROR(queue.Advance());
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<LargeMembers>> LargeMembers::Create(const DeviceLimits& limits) {
  CROUT_ASSIGN_OR_RETURN(const LuPanelKernels kernels, LuPanelKernels::Create(limits));
  auto members = std::unique_ptr<LargeMembers>(new LargeMembers(kernels));
  CROUT_ASSIGN_OR_RETURN(members->side_queues_, SideQueues::Create(kMaxConcurrent - 1, limits));
  return members;
}

bool LargeMembers::Has(DType dtype, const BatchMember& member) const {
  return member.diagonal() >= kSmallest && member.rows <= kernels_.MaxRows(dtype);
}

size_t LargeMembers::LuBytes(const BatchExtent& a) const {
  // The most rows of a member with at least kSmallest columns.
  const int64_t max_rows = std::max<int64_t>(kSmallest, ElementsOf(a) / kSmallest);
  return Aligned(MaxCroutLuWorkspaceBytes(
      kernels_, a.dtype, std::min<int64_t>({a.max_rows, kernels_.MaxRows(a.dtype), max_rows}),
      a.max_diagonal));
}

int64_t LargeMembers::MaxConcurrent(const BatchExtent& a) const {
  if (a.max_diagonal < kSmallest) return 0;
  const int64_t fit = std::min(a.diagonals, ElementsOf(a) / kSmallest) / kSmallest;
  const int64_t large = std::min(a.members, std::max<int64_t>(1, fit));
  // The additional queues use at most half as much memory as the batch itself.
  const size_t beside = a.bytes / 2 / (LuBytes(a) + Context::kCublasWorkspaceBytes);
  return std::min(large, 1 + static_cast<int64_t>(std::min(beside, kMaxConcurrent - 1)));
}

size_t LargeMembers::WorkspaceBytes(const BatchExtent& a) const {
  const auto at_once = static_cast<size_t>(MaxConcurrent(a));
  if (at_once == 0) return 0;
  return at_once * LuBytes(a) + (at_once - 1) * Context::kCublasWorkspaceBytes;
}

absl::Status LargeMembers::Factor(Context& context, const LargeMembersBatch& batch,
                                  std::span<std::byte> workspace, const StopRequested& stop) const {
  if (batch.order.empty()) return absl::OkStatus();
  const size_t lu_bytes = LuBytes(batch.a.extent);
  if (workspace.size() < lu_bytes) {
    return absl::InternalError(absl::StrCat("the large members of the batch need ", lu_bytes,
                                            " bytes of workspace, got ", workspace.size()));
  }
  // The workspace, not this extent, determines the number of queues. The workspace may have been
  // sized for a less exact extent. Such an extent overestimates the members and leaves memory for
  // fewer queues.
  const size_t beside = (workspace.size() - lu_bytes) / (lu_bytes + Context::kCublasWorkspaceBytes);
  const SideQueues::Taken taken =
      side_queues_->Take(std::min({batch.order.size() - 1, kMaxConcurrent - 1, beside}));
  const auto take = [&](size_t bytes) {
    const std::span<std::byte> part = workspace.first(bytes);
    workspace = workspace.subspan(bytes);
    return part;
  };
  std::vector<LargeMembersQueue> queues;
  queues.emplace_back(LuStreams::WithoutProgress(context), kernels_, batch, take(lu_bytes), stop);
  for (size_t k = 0; k < taken.size(); ++k) {
    CROUT_RETURN_IF_ERROR(taken[k].Fork(context, take(Context::kCublasWorkspaceBytes)));
    queues.emplace_back(LuStreams{taken[k].main(), taken[k].ahead(), context.report(), false},
                        kernels_, batch, take(lu_bytes), stop);
  }
  Distribute(batch.order.size(), queues);
  context.report().stop = 0;
  absl::Status status = AdvanceAll(queues);
  // Join on errors as well: a queue may be in the middle of a member.
  for (LargeMembersQueue& queue : queues) status.Update(queue.Join());
  for (size_t k = 0; k < taken.size(); ++k) status.Update(taken[k].Join(context));
  status.Update(context.BindQueues());
  return status;
}

}  // namespace crout::cuda
