#include "crout/options.h"

namespace crout::client {

google::protobuf::Duration ToProtoDuration(absl::Duration duration) {
  google::protobuf::Duration result;
  result.set_seconds(absl::IDivDuration(duration, absl::Seconds(1), &duration));
  result.set_nanos(static_cast<int32_t>(duration / absl::Nanoseconds(1)));
  return result;
}

}  // namespace crout::client
