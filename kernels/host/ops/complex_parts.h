// SPDX-License-Identifier: Apache-2.0

// A complex number as two real numbers, because compilers do not vectorize loops over complex
// numbers.
#ifndef CROUT_KERNELS_HOST_OPS_COMPLEX_PARTS_H_
#define CROUT_KERNELS_HOST_OPS_COMPLEX_PARTS_H_

#include <complex>
#include <type_traits>

#include "kernels/host/ops/vector_clones.h"
#include "kernels/scalar.h"

namespace crout::host {

template <class Real>
struct ComplexParts {
  Real re = 0;
  Real im = 0;

  CROUT_PART_OF_CLONES ComplexParts& operator+=(ComplexParts y) {
    re += y.re;
    im += y.im;
    return *this;
  }
  CROUT_PART_OF_CLONES friend ComplexParts operator*(ComplexParts x, ComplexParts y) {
    return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re};
  }
  CROUT_PART_OF_CLONES friend ComplexParts operator*(ComplexParts x, Real y) {
    return {x.re * y, x.im * y};
  }
};

// The type that replaces T in loops to be vectorized; T itself if it is real.
template <class T>
using Parts = std::conditional_t<kIsComplex<T>, ComplexParts<RealPart<T>>, T>;

// *x in float64.
template <class T>
CROUT_PART_OF_CLONES Parts<WideType<T>> LoadWide(const T* x) {
  if constexpr (kIsComplex<T>) {
    const auto* const parts = reinterpret_cast<const RealPart<T>*>(x);
    return {static_cast<double>(parts[0]), static_cast<double>(parts[1])};
  } else {
    return static_cast<double>(*x);
  }
}

}  // namespace crout::host

#endif  // CROUT_KERNELS_HOST_OPS_COMPLEX_PARTS_H_
