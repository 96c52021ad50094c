// What a request says in words, checked before it is sent.
#ifndef CROUT_CLIENT_CPP_REQUEST_TEXTS_H_
#define CROUT_CLIENT_CPP_REQUEST_TEXTS_H_

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace crout::client {

// INVALID_ARGUMENT, naming the field, where a `string` of `request`, or of a message in it, is not
// UTF-8. proto3 has no other strings: a server refuses the message as a whole, and cannot say why.
absl::Status CheckTexts(const google::protobuf::Message& request);

}  // namespace crout::client

#endif  // CROUT_CLIENT_CPP_REQUEST_TEXTS_H_
