// SPDX-License-Identifier: Apache-2.0

// Checks of the strings in a request before it is sent.
#ifndef CROUT_CLIENT_CPP_REQUEST_TEXTS_H_
#define CROUT_CLIENT_CPP_REQUEST_TEXTS_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace crout::client {

// INVALID_ARGUMENT, with the name of the field, if a `string` of `request` or of a nested message
// is not UTF-8. proto3 requires UTF-8; a server rejects the message without naming the field.
absl::Status CheckTexts(const google::protobuf::Message& request);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_REQUEST_TEXTS_H_
