// SPDX-License-Identifier: Apache-2.0

// Conversion between native structs and messages of proto/crout/v1.
#ifndef CROUT_CLIENT_CPP_CONVERT_H_
#define CROUT_CLIENT_CPP_CONVERT_H_

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include "absl/time/time.h"
#include "crout/options.h"
#include "crout/results.h"
#include "crout/types.h"

namespace crout {
inline namespace api {
namespace internal {

google::protobuf::Duration ToProto(absl::Duration duration);
google::protobuf::Timestamp ToProto(absl::Time time);
absl::Duration FromProto(const google::protobuf::Duration& duration);
absl::Time FromProto(const google::protobuf::Timestamp& time);

// Sets the fields of `message`, the contract's message for T, from `native`. Default values stay
// unset. T: a struct of crout/options.h.
template <class T>
void Fill(const T& native, google::protobuf::Message* message);

// Converts the contract's message for T. T: a struct of crout/results.h, or DenseSpec.
template <class T>
T Read(const google::protobuf::Message& message);

}  // namespace internal
}  // namespace api
}  // namespace crout

#endif  // CROUT_CLIENT_CPP_CONVERT_H_
