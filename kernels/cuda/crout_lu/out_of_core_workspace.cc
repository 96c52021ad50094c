// SPDX-License-Identifier: Apache-2.0

#include "kernels/cuda/crout_lu/out_of_core_workspace.h"

#include <algorithm>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cuda/blocked/interchange_rows.h"
#include "kernels/cuda/blocked/lu_control.h"
#include "kernels/cuda/crout_lu/crout_lu.h"
#include "kernels/cuda/crout_lu/tf32_product.h"
#include "kernels/cuda/device/complex.h"

namespace crout::cuda {
namespace {

constexpr size_t kAlignment = 256;
constexpr int64_t kUnit = 512;  // block columns and pieces are multiples of it
constexpr int64_t kPiece = 1024;

int64_t RoundUp(int64_t count, int64_t unit) { return (count + unit - 1) / unit * unit; }

// Twice the width at which copies take as long as products (out_of_core.h).
int64_t WidestBlock(DType dtype) { return IsComplex(dtype) ? 4096 : 8192; }

}  // namespace

OutOfCoreWorkspace OutOfCoreWorkspace::For(const LuPanelKernels& kernels,
                                           const OutOfCoreBlocking& blocking, DType dtype,
                                           int64_t n) {
  OutOfCoreWorkspace w;
  size_t end = 0;
  const auto place = [&end](size_t bytes) {
    const size_t begin = (end + kAlignment - 1) / kAlignment * kAlignment;
    end = begin + bytes;
    return begin;
  };
  const int64_t width = std::min(blocking.width, n);
  const int64_t piece = std::min(blocking.piece, width);
  const int64_t blocks = (n + blocking.width - 1) / blocking.width;
  w.ld = RoundUp(n, 32);  // columns begin at multiples of 128 bytes or more
  w.control = place(DispatchDevice(
      dtype, [](auto tag) { return sizeof(LuControl<typename decltype(tag)::type>); }));
  w.plan = place(sizeof(InterchangePlan));
  w.ipiv = place(n * sizeof(int64_t));
  w.infos = place(blocks * sizeof(int));
  w.sources = place(blocks * n * sizeof(int64_t));
  for (size_t& resident : w.resident) resident = place(w.ld * width * SizeOf(dtype));
  for (size_t& staged : w.staged) staged = place(w.ld * piece * SizeOf(dtype));
  if (blocking.panel.tf32) {
    constexpr int64_t kAny = std::numeric_limits<int64_t>::max();
    w.split_left = place(Tf32LeftBytes(dtype, n, piece));
    w.split_right = place(Tf32RightBytes(dtype, n, piece, kAny));
  }
  for (int64_t begin = 0; begin < n; begin += blocking.width) {
    w.lu_bytes = std::max(w.lu_bytes, CroutLuWorkspaceBytes(kernels, blocking.panel, dtype,
                                                            n - begin, std::min(width, n - begin)));
  }
  w.lu = place(w.lu_bytes);
  w.bytes = end;
  return w;
}

size_t OutOfCoreBytes(const LuPanelKernels& kernels, const OutOfCoreBlocking& blocking, DType dtype,
                      int64_t n) {
  return OutOfCoreWorkspace::For(kernels, blocking, dtype, n).bytes;
}

OutOfCoreBlocking OutOfCoreBlocking::Of(DType dtype, int64_t n, int64_t width, int64_t piece,
                                        bool tf32_products) {
  LuBlocking panel = LuBlocking::For(dtype, n, tf32_products);
  panel.look_ahead = width > 2 * panel.block;
  return {width, piece, panel};
}

OutOfCoreBlocking OutOfCoreBlocking::Narrowest(DType dtype, int64_t n, bool tf32_products) {
  return Of(dtype, n, kUnit, kUnit, tf32_products);
}

absl::StatusOr<OutOfCoreBlocking> OutOfCoreBlocking::For(const LuPanelKernels& kernels, DType dtype,
                                                         int64_t n, size_t device_bytes,
                                                         bool tf32_products) {
  size_t needed = 0;
  for (int64_t width = std::min(WidestBlock(dtype), RoundUp(n, kUnit)); width > 0; width -= kUnit) {
    const auto blocking = Of(dtype, n, width, std::min(kPiece, width), tf32_products);
    needed = OutOfCoreBytes(kernels, blocking, dtype, n);
    if (needed <= device_bytes) return blocking;
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("LU out of core of order ", n, " needs at least ", needed,
                   " bytes of device memory; ", device_bytes, " are available"));
}

}  // namespace crout::cuda
