#include "tests/bench/crout_bench/families.h"

#include <array>
#include <random>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/util/strings.h"

namespace crout::bench {
namespace {

using Generator = std::mt19937_64;

constexpr std::array<std::string_view, 3> kNames{"thesis", "dominant", "random"};

// Uniform in [-1, 1). Not std::uniform_real_distribution, which differs between libraries.
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
  // |a_ii| >= n - 1 and the n - 1 others of a row are below 1 each.
  for (int64_t i = 0; i < n; ++i) a[i * (n + 1)] += static_cast<double>(n);
}

// A + i A^T, a real part, then an imaginary one, for each element.
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

absl::StatusOr<std::vector<double>> Generate(std::string_view family, int64_t n, bool complex) {
  if (n < 1) return absl::InvalidArgumentError(absl::StrCat("order ", n, " is not positive"));
  Generator generator(static_cast<uint64_t>(n));
  std::vector<double> a(n * n);
  if (family == "thesis") {
    MakeThesis(n, generator, a);
  } else if (family == "dominant") {
    MakeDominant(n, generator, a);
  } else if (family == "random") {
    for (double& v : a) v = Uniform(generator);
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "no family '", ToAbsl(family),
        "'; there are: ", absl::StrJoin(kNames, ", ", [](std::string* out, std::string_view name) {
          absl::StrAppend(out, ToAbsl(name));
        })));
  }
  return complex ? WithTranspose(a, n) : a;
}

void Perturb(double delta, uint64_t seed, std::vector<double>& a) {
  Generator generator(seed);
  for (double& v : a) v *= 1 + delta * Uniform(generator);
}

}  // namespace crout::bench
