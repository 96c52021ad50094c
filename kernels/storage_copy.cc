#include "kernels/factorization.h"
#include "kernels/sync_on_exit.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

using EnqueueCopy = absl::FunctionRef<absl::Status(const Buffer& from, const Buffer& to)>;

absl::StatusOr<FactorStorage> CopyStorage(ExecutionContext& context, const FactorStorage& from,
                                          MemoryResource& memory, EnqueueCopy copy) {
  FactorStorage to;
  SyncOnExit sync(context);
  for (Buffer FactorStorage::*part :
       {&FactorStorage::lu, &FactorStorage::ipiv, &FactorStorage::matrix, &FactorStorage::scales}) {
    if (!(from.*part)) continue;
    CROUT_ASSIGN_OR_RETURN(to.*part, memory.Allocate((from.*part).size()));
    CROUT_RETURN_IF_ERROR(copy(from.*part, to.*part));
  }
  CROUT_RETURN_IF_ERROR(context.Synchronize());
  sync.Dismiss();
  return to;
}

}  // namespace

absl::StatusOr<FactorStorage> CopyStorageToHost(ExecutionContext& context,
                                                const FactorStorage& from, MemoryResource& to) {
  return CopyStorage(context, from, to, [&](const Buffer& source, const Buffer& target) {
    return context.ops().CopyToHost(source.data(), target.data(), source.size());
  });
}

absl::StatusOr<FactorStorage> CopyStorageToDevice(ExecutionContext& context,
                                                  const FactorStorage& from) {
  return CopyStorage(
      context, from, context.device().memory(), [&](const Buffer& source, const Buffer& target) {
        return context.ops().CopyToDevice(source.data(), target.data(), source.size());
      });
}

}  // namespace crout
