// SPDX-License-Identifier: Apache-2.0

// Replaces the names of protocol fields in the server's messages by this library's names.
#ifndef CROUT_CLIENT_CPP_FIELD_NAMES_H_
#define CROUT_CLIENT_CPP_FIELD_NAMES_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace crout {
inline namespace api {
namespace internal {

// Replaces field paths in `message` by arguments of Client's methods: "header.matrix.dense.rows" by
// "matrix", "header.options.factor_dtype" by "options.factor_dtype", "header.cache.lease" by
// "cache.lease". All other paths of a header stay, because callers fill in the header.
std::string WithArgumentNames(absl::string_view message);

// Converts the status of a call for callers of the library: ToAbslStatus(), with
// WithArgumentNames() of the message.
absl::Status ServerStatus(const grpc::Status& status);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_FIELD_NAMES_H_
