// SPDX-License-Identifier: Apache-2.0

#include "kernels/host/ops/host_ops.h"

#include <algorithm>
#include <cstring>

#include "kernels/host/device/parallel_for.h"
#include "kernels/host/device/strips.h"
#include "kernels/host/ops/blas.h"
#include "kernels/host/ops/matrix_functions.h"
#include "kernels/util/status_macros.h"

namespace crout::host {
namespace {

int64_t Elements(const AnyMatrix& m) { return m.rows * m.cols; }

// Operations of a product of `a` and a column.
double ProductFlops(const AnyMatrix& a) {
  return MultiplyAddFlops(a.dtype) * static_cast<double>(Elements(a));
}

bool SamePlace(const PackedMatrix& in, const AnyMatrix& out) {
  return in.data == out.data && in.dtype == out.dtype && in.layout == Layout::kColumnMajor &&
         out.ld == std::max<int64_t>(1, in.rows);
}

}  // namespace

absl::Status HostOps::Import(const PackedMatrix& in, const AnyMatrix& out) {
  executor_.Run(WidthFor(in.rows * in.cols), [&](int cores) {
    report_.matrix = ComputeMatrixStats(cores, in, out.dtype, scratch_);
    if (!SamePlace(in, out)) Unpack(cores, in, out);
  });
  return absl::OkStatus();
}

absl::Status HostOps::Export(const AnyMatrix& in, const PackedMatrix& layout, std::byte* out) {
  executor_.Run(WidthFor(Elements(in)), [&](int cores) { Pack(cores, in, layout, out); });
  return absl::OkStatus();
}

absl::Status HostOps::CopyScaled(const AnyMatrix& in, const double* row, const double* col,
                                 const AnyMatrix& out) {
  executor_.Run(WidthFor(Elements(in)), [&](int cores) { ScaleInto(cores, in, row, col, out); });
  return absl::OkStatus();
}

absl::Status HostOps::EquilibrationScales(const AnyMatrix& a, double* row, double* col) {
  executor_.Run(WidthFor(Elements(a)),
                [&](int cores) { report_.scale = ComputeScales(cores, a, row, col); });
  return absl::OkStatus();
}

absl::Status HostOps::ColumnScales(const AnyMatrix& in, const double* row, int exponent,
                                   double* down, double* up) {
  executor_.Run(WidthFor(in.rows * in.cols),
                [&](int cores) { ComputeColumnScales(cores, in, row, exponent, down, up); });
  return absl::OkStatus();
}

absl::Status HostOps::StartProbe(const AnyMatrix& a, const FactorProbe& probe) {
  executor_.Run(WidthFor(Elements(a)), [&](int cores) { StartFactorProbe(cores, a, probe); });
  return absl::OkStatus();
}

absl::Status HostOps::InspectFactor(const AnyMatrix& lu, bool unit_in_u, const int64_t* ipiv,
                                    const FactorProbe& probe) {
  executor_.Run(WidthFor(Elements(lu)), [&](int cores) {
    report_.factor = ComputeFactorStats(cores, lu, unit_in_u, ipiv);
    if (probe.work == nullptr) return;
    report_.factor.probe = FinishFactorProbe(cores, lu, unit_in_u, ipiv, probe);
  });
  return absl::OkStatus();
}

absl::Status HostOps::InspectPivots(const AnyMatrix& lu) {
  report_.factor = ComputePivotStats(lu);
  return absl::OkStatus();
}

absl::Status HostOps::Residual(const AnyMatrix& a, Op op, double norm_op_a, const AnyMatrix& x,
                               const AnyMatrix& b, const AnyMatrix& r) {
  const auto subtract = [&](int cores, int64_t begin, int64_t count) {
    const AnyMatrix left = Columns(r, begin, count);
    ScaleInto(cores, Columns(b, begin, count), nullptr, nullptr, left);
    SubtractProduct(cores, a, op, Columns(x, begin, count), left, scratch_);
  };
  const Width width = WidthFor(Elements(a));
  CROUT_RETURN_IF_ERROR(ForStrips(executor_, width, context_, x.cols, ProductFlops(a), subtract));
  executor_.Run(Width::kOneCore, [&](int) {
    report_.residual.backward_error = NormwiseBackwardError(norm_op_a, x, b, r);
  });
  return absl::OkStatus();
}

absl::Status HostOps::WideRangeResidual(const AnyMatrix& a, Op op, const AnyMatrix& x,
                                        const AnyMatrix& b, const AnyMatrix& r) {
  executor_.Run(WidthFor(Elements(a)), [&](int cores) {
    report_.residual =
        ComputeWideRangeResidual(cores, a, op, x, b, r, [&] { return context_.stop_requested(); });
  });
  return CheckNotStopped([&] { return context_.stop_requested(); });
}

absl::Status HostOps::ComponentwiseError(const AnyMatrix& r, const MatrixView<double>& w) {
  executor_.Run(Width::kOneCore, [&](int) {
    report_.residual.componentwise_error = host::ComponentwiseError(r, w);
  });
  return absl::OkStatus();
}

absl::Status HostOps::AbsProduct(const AnyMatrix& a, Op op, const AnyMatrix& x, const AnyMatrix& b,
                                 const MatrixView<double>& w) {
  const auto add = [&](int cores, int64_t begin, int64_t count) {
    const MatrixView<double> sums = Block(w, 0, begin, w.rows, count);
    ComputeMagnitudes(cores, Columns(b, begin, count), sums);
    AddAbsProduct(cores, a, op, Columns(x, begin, count), sums, scratch_);
  };
  return ForStrips(executor_, WidthFor(Elements(a)), context_, x.cols, ProductFlops(a), add);
}

absl::Status HostOps::Add(const AnyMatrix& d, const AnyMatrix& x) {
  executor_.Run(WidthFor(d.rows * d.cols), [&](int cores) {
    DispatchDType(x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const auto from = d.As<T>();
      const auto to = x.As<T>();
      ParallelFor(cores, d.cols, [&](int64_t j) {
        for (int64_t i = 0; i < d.rows; ++i) to(i, j) += from(i, j);
      });
    });
  });
  return absl::OkStatus();
}

absl::Status HostOps::SetEntries(const EntryList& entries, const AnyMatrix& a) {
  executor_.Run(Width::kOneCore, [&](int) { report_.entries = host::SetEntries(entries, a); });
  return absl::OkStatus();
}

absl::Status HostOps::SumValues(const ValueMap& map, DType dtype, const std::byte* values,
                                std::byte* out) {
  executor_.Run(host::WidthFor(map.shape.sources + map.shape.elements), [&](int cores) {
    report_.values = host::SumValues(cores, map, dtype, values, out);
  });
  return absl::OkStatus();
}

absl::Status HostOps::Multiply(double alpha, Op op, const AnyMatrix& a, const AnyMatrix& b,
                               double beta, const AnyMatrix& c) {
  if (c.rows == 0 || c.cols == 0 || (b.rows == 0 && beta == 1)) return absl::OkStatus();
  const auto multiply = [&](int, int64_t begin, int64_t count) {
    DispatchDType(c.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      host::MultiplyAdd(ConvertTo<T>(alpha), op, a.As<T>(), Columns(b, begin, count).As<T>(),
                        ConvertTo<T>(beta), Columns(c, begin, count).As<T>());
    });
  };
  const Width width = WidthFor(std::max(Elements(a), Elements(c)));
  return ForStrips(executor_, width, context_, c.cols, ProductFlops(a), multiply);
}

absl::Status HostOps::CopyOnDevice(const void* from, void* to, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();  // the pointers may be null
  executor_.Run(WidthFor(static_cast<int64_t>(bytes / sizeof(double))), [&](int cores) {
    const size_t share = (bytes + cores - 1) / cores;
    ParallelFor(cores, cores, [&](int64_t k) {
      const size_t begin = std::min(bytes, share * static_cast<size_t>(k));
      std::memcpy(static_cast<std::byte*>(to) + begin, static_cast<const std::byte*>(from) + begin,
                  std::min(share, bytes - begin));
    });
  });
  return absl::OkStatus();
}

absl::Status HostOps::CopyToDevice(const void* host, void* device, size_t bytes) {
  return CopyOnDevice(host, device, bytes);
}

absl::Status HostOps::CopyToHost(const void* device, void* host, size_t bytes) {
  return CopyOnDevice(device, host, bytes);
}

}  // namespace crout::host
