// SPDX-License-Identifier: Apache-2.0

#include "kernels/jobs/sparse/sparse_download.h"

#include <utility>

#include "kernels/device.h"
#include "kernels/sparse/factor_entries.h"
#include "kernels/util/size_class.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Bytes of a FactorEntries (two index arrays and a temporary one) and of WriteFactor's counts.
size_t WorkBytes(int64_t n) { return n * 3 * sizeof(int32_t) + FactorWriterBytes(n); }

void WriteFronts(const Analysis& analysis, std::span<const std::byte> block, DType dtype,
                 const SparseDownloadLayout& layout, std::byte* out) {
  DispatchDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    WriteFactor<T>(analysis, FactorEntries<T>(analysis, block.data()), layout, out);
  });
}

}  // namespace

absl::StatusOr<size_t> SparseDownloadBytes(const SparseLu& method, const FactorSummary& factor,
                                           bool on_host) {
  const Analysis& analysis = *factor.sparse->analysis;
  const DType dtype = factor.factor_dtype;
  CROUT_ASSIGN_OR_RETURN(const SparseDownloadLayout layout,
                         SparseDownloadLayout::For(analysis, factor.sparse->numeric, dtype));
  size_t copy = 0;
  if (!on_host) {
    CROUT_ASSIGN_OR_RETURN(copy, method.FactorBytes(analysis, dtype));
  }
  return BlockBytes(layout.bytes) + BlockBytes(copy) + BlockBytes(WorkBytes(analysis.n));
}

absl::StatusOr<Buffer> DownloadSparse(ExecutionContext* context, const SparseLu& method,
                                      const FactorSummary& factor, const FactorParts& parts,
                                      MemoryResource& memory) {
  const Analysis& analysis = *factor.sparse->analysis;
  CROUT_ASSIGN_OR_RETURN(
      const SparseDownloadLayout layout,
      SparseDownloadLayout::For(analysis, factor.sparse->numeric, factor.factor_dtype));
  CROUT_ASSIGN_OR_RETURN(Buffer out, memory.Allocate(layout.bytes));
  std::span<const std::byte> block(parts[kLuPart].data(), parts[kLuPart].size());
  Buffer copy;
  if (context != nullptr && context->device().info().kind != DeviceKind::kHost) {
    CROUT_ASSIGN_OR_RETURN(copy, memory.Allocate(block.size()));
    CROUT_RETURN_IF_ERROR(context->ops().CopyToHost(block.data(), copy.data(), copy.size()));
    CROUT_RETURN_IF_ERROR(context->Synchronize());
    block = {copy.data(), copy.size()};
  }
  if (analysis.n == 0) {
    download_internal::Store(int64_t{0}, out.data());  // two int32 row offsets, both 0
  } else if (method.ProvidesFronts()) {
    WriteFronts(analysis, block, factor.factor_dtype, layout, out.data());
  } else {
    CROUT_RETURN_IF_ERROR(
        method.WriteEntries(analysis, block, factor.factor_dtype, layout, out.data()));
  }
  return out;
}

}  // namespace crout
