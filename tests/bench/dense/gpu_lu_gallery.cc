// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/dense/gpu_lu_gallery.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/dense/lu_runs.h"
#include "tests/support/matrices/gallery.h"

namespace crout {
namespace {

using Json = nlohmann::ordered_json;

// The first order needs one block, the second look-ahead.
constexpr int64_t kGalleryOrders[] = {1000, 3000};

template <class T>
Json BenchKind(cuda::Context& context, const cuda::LuPanelKernels& kernels, const std::string& kind,
               const testing::HostMatrix& matrix, int64_t n) {
  const std::vector<T> host(matrix.begin(), matrix.end());
  double max_abs = 0;
  for (const T value : host) max_abs = std::max(max_abs, std::abs(static_cast<double>(value)));
  LuInput<T> input(context, {n, n}, host);
  Json row = {{"kind", kind}, {"n", n}, {"dtype", std::string(NameOf(kDTypeOf<T>))}};
  const auto add = [&](const std::string& name, auto& run) {
    input.Factor([&] { run(); });
    row[name + "_factor_ratio"] = input.FactorRatio();
    row[name + "_growth"] = input.Growth(max_abs);
    row[name + "_info"] = run.Info();
  };
  Getrf<T> getrf(input);
  CroutLuRun<T> crout_lu(input, kernels);
  add("getrf", getrf);
  add("crout_lu", crout_lu);
  return row;
}

}  // namespace

Json BenchLuGallery(cuda::Context& context, const cuda::LuPanelKernels& kernels) {
  Json rows = Json::array();
  for (const int64_t n : kGalleryOrders) {
    for (const testing::GalleryKind& kind : testing::Gallery()) {
      const testing::HostMatrix matrix = kind.make(n);
      rows.push_back(BenchKind<double>(context, kernels, kind.name, matrix, n));
      if (std::string_view(kind.name).ends_with("f64")) continue;
      rows.push_back(BenchKind<float>(context, kernels, kind.name, matrix, n));
    }
  }
  return rows;
}

}  // namespace crout
