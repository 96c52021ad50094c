// SPDX-License-Identifier: Apache-2.0

// Names of this library in place of the contract's fields in messages of the server.
#ifndef CROUT_CLIENT_CPP_FIELD_NAMES_H_
#define CROUT_CLIENT_CPP_FIELD_NAMES_H_

#include <grpcpp/support/status.h>

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace crout::client {

// `message` with the arguments of Client's methods in place of paths of fields: "matrix" for
// "header.matrix.dense.rows", "options.factor_dtype" for "header.options.factor_dtype",
// "cache.lease" for "header.cache.lease". Paths of other members of a header that callers fill in
// stay as they are.
std::string WithArgumentNames(absl::string_view message);

// ToAbslStatus() with WithArgumentNames() of the message: the end of a call, for callers of the
// library.
absl::Status ServerStatus(const grpc::Status& status);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_FIELD_NAMES_H_
