// SPDX-License-Identifier: Apache-2.0

// What the daemon says of its services to those who do not have their .proto files.
#ifndef CROUT_SERVER_RPC_REFLECTION_H_
#define CROUT_SERVER_RPC_REFLECTION_H_

#include <string>
#include <vector>

#include "grpc/reflection/v1alpha/reflection.pb.h"

namespace crout {

// The answer to one request of grpc.reflection.v1alpha, by the descriptors that are linked to the
// program; `services` are what it lists. What there is not is a response of its own (NOT_FOUND), as
// a request of none of the protocol's kinds is (INVALID_ARGUMENT). Thread-safe.
grpc::reflection::v1alpha::ServerReflectionResponse Reflect(
    const grpc::reflection::v1alpha::ServerReflectionRequest& request,
    const std::vector<std::string>& services);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_REFLECTION_H_
