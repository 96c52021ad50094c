// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/families.h"

#include <algorithm>
#include <array>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/status_macros.h"
#include "kernels/util/strings.h"
#include "tests/bench/crout_bench/mean_curvature.h"
#include "tests/bench/crout_bench/poisson_cube.h"

namespace crout::bench {
namespace {

using Generator = std::mt19937_64;

constexpr std::array<std::string_view, 11> kNames{
    "thesis", "dominant",    "random",    "eyvazov",   "arrow",        "mcf",
    "bddc",   "bddc_corner", "bddc_edge", "bddc_face", "bddc_interior"};

struct Place {
  std::string_view family;
  CubePlace place;
};
constexpr std::array<Place, 5> kPlaces{{{"bddc", {2, 3}},
                                        {"bddc_corner", {4, 3}},
                                        {"bddc_edge", {4, 4}},
                                        {"bddc_face", {4, 5}},
                                        {"bddc_interior", {4, 6}}}};

const CubePlace* FindPlace(std::string_view family) {
  for (const Place& place : kPlaces) {
    if (place.family == family) return &place.place;
  }
  return nullptr;
}

// Returns a number uniform in [-1, 1). std::uniform_real_distribution differs between standard
// libraries.
double Uniform(Generator& generator) {
  return static_cast<double>(generator() >> 11) * 0x1p-52 - 1;
}

void MakeThesis(int64_t n, Generator& generator, std::vector<double>& a) {
  for (double& v : a) v = 1000 * Uniform(generator);
  for (int64_t i = 0; i + 1 < n; ++i) {
    if (Uniform(generator) < 0) a[i * (n + 1)] = 0;
  }
}

void MakeDominant(int64_t n, Generator& generator, std::vector<double>& a) {
  for (double& v : a) v = Uniform(generator);
  // |a_ii| >= n - 1. The other n - 1 elements of a row have magnitudes of at most 1.
  for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] += static_cast<double>(n);
}

void MakeArrow(int64_t n, Generator& generator, std::vector<double>& a) {
  std::fill(a.begin(), a.end(), 0.0);
  for (int64_t i = 0; i < n; ++i) {
    a[i * (n + 1)] = 1.5 + 0.5 * Uniform(generator);
    if (i + 1 == n) break;
    a[n - 1 + i * n] = Uniform(generator);
    a[i + (n - 1) * n] = Uniform(generator);
  }
}

// Returns the matrix of the second step, the first step with gradients.
std::vector<double> MakeMeanCurvature(int64_t grid) {
  MeanCurvatureFlow flow(grid);
  flow.Advance();
  return flow.Matrix();
}

// Returns A + i A^T with interleaved real and imaginary parts.
std::vector<double> WithTranspose(const std::vector<double>& a, int64_t n) {
  std::vector<double> parts(2 * a.size());
  for (int64_t j = 0; j < n; ++j) {
    for (int64_t i = 0; i < n; ++i) {
      parts[2 * (i + j * n)] = a[i + j * n];
      parts[2 * (i + j * n) + 1] = a[j + i * n];
    }
  }
  return parts;
}

}  // namespace

std::span<const std::string_view> FamilyNames() { return kNames; }

absl::StatusOr<int64_t> OrderOf(std::string_view family, int64_t size) {
  const CubePlace* const place = FindPlace(family);
  if (size < 1) return absl::InvalidArgumentError(absl::StrCat("order ", size, " is not positive"));
  const int64_t least = place != nullptr ? 2 : family == "mcf" ? 3 : 1;
  if (size < least) {
    return absl::InvalidArgumentError(
        absl::StrCat("family '", ToAbsl(family), "' begins with ", least));
  }
  if (place != nullptr) return PoissonCubeOrder(size, *place);
  return family == "mcf" ? size * size : size;
}

absl::StatusOr<std::vector<double>> Generate(std::string_view family, int64_t size, bool complex) {
  if (std::find(kNames.begin(), kNames.end(), family) == kNames.end()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "no family '", ToAbsl(family),
        "'; there are: ", absl::StrJoin(kNames, ", ", [](std::string* out, std::string_view name) {
          absl::StrAppend(out, ToAbsl(name));
        })));
  }
  CROUT_ASSIGN_OR_RETURN(const int64_t n, OrderOf(family, size));
  Generator generator(static_cast<uint64_t>(n));
  std::vector<double> a(n * n);
  if (family == "thesis") {
    MakeThesis(n, generator, a);
  } else if (family == "dominant") {
    MakeDominant(n, generator, a);
  } else if (family == "random") {
    for (double& v : a) v = Uniform(generator);
  } else if (family == "eyvazov") {
    for (double& v : a) v = 500.5 + 499.5 * Uniform(generator);
  } else if (family == "arrow") {
    MakeArrow(n, generator, a);
  } else if (family == "mcf") {
    a = MakeMeanCurvature(size);
  } else {
    a = MakePoissonCube(size, *FindPlace(family)).values;
  }
  return complex ? WithTranspose(a, n) : a;
}

void Perturb(double delta, uint64_t seed, std::vector<double>& a) {
  Generator generator(seed);
  for (double& v : a) v *= 1 + delta * Uniform(generator);
}

}  // namespace crout::bench
