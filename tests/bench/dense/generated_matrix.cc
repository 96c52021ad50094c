// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/dense/generated_matrix.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <complex>
#include <thread>
#include <utility>

#include "kernels/scalar.h"

namespace crout {
namespace {

// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// Uniform in [-1, 1), a multiple of 2^-31, so that float32 differs only by one rounding.
template <class Part>
Part UniformPart(uint32_t bits) {
  return static_cast<Part>(static_cast<int32_t>(bits)) * static_cast<Part>(0x1p-31);
}

template <class T>
T Element(uint64_t index) {
  using Part = RealPart<T>;
  const uint64_t bits = Mixed(index);
  const auto high = UniformPart<Part>(static_cast<uint32_t>(bits >> 32));
  if constexpr (kIsComplex<T>) {
    return {high, UniformPart<Part>(static_cast<uint32_t>(bits))};
  } else {
    return high;
  }
}

template <class T>
using Vector = std::vector<WideType<T>>;

// Calls f(j, mine) for every j in [0, n), on all cores, and returns the results. Each thread has
// its own result, which starts as `zero`.
template <class Result, class F>
std::vector<Result> OnAllCores(int64_t n, const Result& zero, F f) {
  constexpr int64_t kAtOnce = 16;
  const unsigned threads = std::max(1U, std::thread::hardware_concurrency());
  std::vector<Result> results(threads, zero);
  std::atomic<int64_t> next = 0;
  std::vector<std::thread> running;
  for (Result& mine : results) {
    running.emplace_back([&] {
      for (int64_t begin; (begin = next.fetch_add(kAtOnce)) < n;) {
        for (int64_t j = begin; j < std::min(begin + kAtOnce, n); ++j) f(j, mine);
      }
    });
  }
  for (std::thread& thread : running) thread.join();
  return results;
}

// Returns the sum of the vectors.
template <class V>
V Sum(const std::vector<V>& vectors) {
  V sum(vectors[0].size());
  for (const V& vector : vectors) {
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += vector[i];
  }
  return sum;
}

}  // namespace

template <class T>
void GeneratedMatrix<T>::Fill(const MatrixView<T>& a) const {
  struct Nothing {};
  OnAllCores(n_, Nothing{}, [&](int64_t j, Nothing&) {
    for (int64_t i = 0; i < n_; ++i) a(i, j) = Element<T>(static_cast<uint64_t>(i + j * n_));
  });
}

template <class T>
double GeneratedMatrix<T>::FactorError(const MatrixView<T>& lu,
                                       const std::vector<int64_t>& ipiv) const {
  const Vector<T> zero(n_);
  Vector<T> x(n_);
  double largest = 0;
  for (int64_t j = 0; j < n_; ++j) {
    x[j] = ToFloat64(Element<T>(static_cast<uint64_t>(n_ * n_ + j)));
    largest = std::max(largest, Modulus(x[j]));
  }
  // A x, and the sums of the moduli in the rows of A.
  struct Product {
    Vector<T> ax;
    std::vector<double> sums;
  };
  const std::vector<Product> products =
      OnAllCores(n_, Product{zero, std::vector<double>(n_)}, [&](int64_t j, Product& mine) {
        for (int64_t i = 0; i < n_; ++i) {
          const WideType<T> element = ToFloat64(Element<T>(static_cast<uint64_t>(i + j * n_)));
          mine.ax[i] += element * x[j];
          mine.sums[i] += std::abs(element);
        }
      });
  Vector<T> ax(n_);
  std::vector<double> sums(n_);
  for (const Product& product : products) {
    for (int64_t i = 0; i < n_; ++i) ax[i] += product.ax[i];
    for (int64_t i = 0; i < n_; ++i) sums[i] += product.sums[i];
  }
  for (int64_t k = 0; k < n_; ++k) std::swap(ax[k], ax[ipiv[k] - 1]);
  const Vector<T> ux = Sum(OnAllCores(n_, zero, [&](int64_t j, Vector<T>& mine) {
    for (int64_t i = 0; i <= j; ++i) mine[i] += ToFloat64(lu(i, j)) * x[j];
  }));
  const Vector<T> lux = Sum(OnAllCores(n_, zero, [&](int64_t k, Vector<T>& mine) {
    mine[k] += ux[k];
    for (int64_t i = k + 1; i < n_; ++i) mine[i] += ToFloat64(lu(i, k)) * ux[k];
  }));
  double error = 0;
  for (int64_t i = 0; i < n_; ++i) {
    const double difference = std::abs(ax[i] - lux[i]);
    error = std::isnan(difference) ? difference : std::max(error, difference);
    if (std::isnan(error)) break;
  }
  return error / (*std::max_element(sums.begin(), sums.end()) * largest);
}

template class GeneratedMatrix<float>;
template class GeneratedMatrix<double>;
template class GeneratedMatrix<std::complex<float>>;
template class GeneratedMatrix<std::complex<double>>;

}  // namespace crout
