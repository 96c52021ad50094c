// SPDX-License-Identifier: Apache-2.0

// Dispatch on element types.
#ifndef CROUT_CLIENT_CLI_FORMATS_ELEMENTS_H_
#define CROUT_CLIENT_CLI_FORMATS_ELEMENTS_H_

#include <complex>

#include "absl/types/span.h"
#include "client/cli/formats/array.h"
#include "crout/v1/matrix.pb.h"

namespace crout::cli {

// Calls f with a value of the type; float64 if unspecified.
template <class F>
auto WithType(v1::Dtype dtype, F f) {
  switch (dtype) {
    case v1::DTYPE_FLOAT32:
      return f(float{});
    case v1::DTYPE_COMPLEX64:
      return f(std::complex<float>{});
    case v1::DTYPE_COMPLEX128:
      return f(std::complex<double>{});
    default:
      return f(double{});
  }
}

// The elements of an array of type T.
template <class T>
absl::Span<const T> ElementsOf(const Array& array) {
  return {reinterpret_cast<const T*>(array.bytes.data()), array.bytes.size() / sizeof(T)};
}

}  // namespace crout::cli

#endif  // CROUT_CLIENT_CLI_FORMATS_ELEMENTS_H_
