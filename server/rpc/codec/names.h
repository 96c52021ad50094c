// SPDX-License-Identifier: Apache-2.0

// Converts algorithms, solvers and types between the protobuf enums and the kernels' names.
#ifndef CROUT_SERVER_RPC_CODEC_NAMES_H_
#define CROUT_SERVER_RPC_CODEC_NAMES_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "crout/v1/factor.pb.h"
#include "crout/v1/matrix.pb.h"
#include "kernels/catalogue.h"
#include "kernels/dtype.h"
#include "kernels/factorization.h"
#include "kernels/jobs/solve.h"
#include "kernels/matrix.h"

namespace crout {

// Returns the enum value's name in lower case without its prefix; "auto" for UNSPECIFIED.
std::string AlgorithmName(v1::Algorithm algorithm);
std::string SolverName(v1::Solver solver);

// Returns the enum value for a name; UNSPECIFIED if the enum has no such value.
v1::Algorithm AlgorithmFromName(std::string_view name);
v1::Solver SolverFromName(std::string_view name);

// Returns INTERNAL if a method of the catalogue has no enum value. A request could not select such
// a method, and a reply could not name it.
absl::Status CheckNames(const Catalogue& catalogue);

v1::Dtype ToProto(DType dtype);
v1::Layout ToProto(Layout layout);
v1::SingularReason ToProto(SingularReason reason);
v1::UnitDiagonal ToProto(UnitDiagonal unit_diagonal);
v1::SolverFallback ToProto(SolverFallback fallback);
v1::FactorPrecision ToProto(FactorPrecision precision);
v1::PrecisionFallback ToProto(PrecisionFallback fallback);

}  // namespace crout

#endif  // CROUT_SERVER_RPC_CODEC_NAMES_H_
