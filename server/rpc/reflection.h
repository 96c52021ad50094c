// SPDX-License-Identifier: Apache-2.0

// Server reflection: describes the daemon's services to clients without their .proto files.
#ifndef CROUT_SERVER_RPC_REFLECTION_H_
#define CROUT_SERVER_RPC_REFLECTION_H_

#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace crout {

// Answers one grpc.reflection.v1alpha request from the descriptors linked into the program.
// `services` are the names that ListServices returns. The response is an error response with the
// code NOT_FOUND for an unknown name, and INVALID_ARGUMENT if the request is not set. Thread-safe.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_REFLECTION_H_
