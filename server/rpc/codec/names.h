// SPDX-License-Identifier: Apache-2.0

// Algorithms, solvers and types: between the contract's enums and the kernels' names.
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

// "auto" for unspecified; the enum's name without its prefix, in lower case, for the others.
std::string AlgorithmName(v1::Algorithm algorithm);
std::string SolverName(v1::Solver solver);

// The reverse; UNSPECIFIED for a name that the contract lacks.
v1::Algorithm AlgorithmFromName(std::string_view name);
v1::Solver SolverFromName(std::string_view name);

// INTERNAL where the contract lacks a name of the catalogue: such a method could not be asked for,
// nor named in a reply.
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
