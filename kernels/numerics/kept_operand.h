// SPDX-License-Identifier: Apache-2.0

// The matrix kept with a factor, as an operand.
#ifndef CROUT_KERNELS_NUMERICS_KEPT_OPERAND_H_
#define CROUT_KERNELS_NUMERICS_KEPT_OPERAND_H_

#include <memory>

#include "kernels/factorization.h"
#include "kernels/operators.h"

namespace crout {

// Returns A as received, dense or sparse as it was kept. Callers use this function instead of
// testing the form. Borrows the factorization. If no matrix was kept, only order() and NormInf()
// are valid.
std::unique_ptr<const Operand> MakeKeptOperand(const Factorization& factor);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_KEPT_OPERAND_H_
