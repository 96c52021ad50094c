// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/workbench.h"

#include <cstring>

#include "kernels/util/status_macros.h"

namespace crout::bench {

std::vector<double> RoundedTo(DType dtype, std::vector<double> values) {
  if (RealOf(dtype) == DType::kFloat64) return values;
  for (double& v : values) v = static_cast<float>(v);
  return values;
}

std::vector<std::byte> Packed(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * SizeOf(RealOf(dtype)));
  DispatchReal(RealOf(dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* out = reinterpret_cast<T*>(bytes.data());
    for (size_t i = 0; i < values.size(); ++i) out[i] = static_cast<T>(values[i]);
  });
  return bytes;
}

std::vector<double> Unpacked(DType dtype, const std::vector<std::byte>& bytes) {
  std::vector<double> values(bytes.size() / SizeOf(RealOf(dtype)));
  DispatchReal(RealOf(dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* in = reinterpret_cast<const T*>(bytes.data());
    for (size_t i = 0; i < values.size(); ++i) values[i] = in[i];
  });
  return values;
}

absl::StatusOr<Workbench> Workbench::Create(ExecutionContext& context, DType dtype, int64_t n,
                                            const std::vector<double>& values) {
  Workbench bench;
  bench.context_ = &context;
  bench.dtype_ = dtype;
  bench.n_ = n;
  MemoryResource& memory = context.device().memory();
  CROUT_ASSIGN_OR_RETURN(bench.original_, memory.Allocate(bench.matrix_bytes()));
  CROUT_ASSIGN_OR_RETURN(bench.lu_, memory.Allocate(bench.matrix_bytes()));
  CROUT_ASSIGN_OR_RETURN(bench.ipiv_, memory.Allocate(n * sizeof(int64_t)));
  CROUT_RETURN_IF_ERROR(bench.Assign(values));
  return bench;
}

absl::StatusOr<Buffer> Workbench::Copy() const {
  CROUT_ASSIGN_OR_RETURN(Buffer copy, context_->device().memory().Allocate(matrix_bytes()));
  CROUT_RETURN_IF_ERROR(
      context_->ops().CopyOnDevice(original_.data(), copy.data(), matrix_bytes()));
  CROUT_RETURN_IF_ERROR(context_->Synchronize());
  return copy;
}

absl::Status Workbench::Assign(const std::vector<double>& values) {
  const std::vector<std::byte> bytes = Packed(dtype_, values);
  CROUT_RETURN_IF_ERROR(context_->ops().CopyToDevice(bytes.data(), original_.data(), bytes.size()));
  return context_->Synchronize();
}

absl::Status Workbench::Reset() {
  CROUT_RETURN_IF_ERROR(context_->ops().CopyOnDevice(original_.data(), lu_.data(), matrix_bytes()));
  return context_->Synchronize();
}

absl::Status Workbench::ReserveWorkspace(size_t bytes) {
  if (bytes <= workspace_.size()) return absl::OkStatus();
  workspace_.reset();
  CROUT_ASSIGN_OR_RETURN(workspace_, context_->device().memory().Allocate(bytes));
  return absl::OkStatus();
}

}  // namespace crout::bench
