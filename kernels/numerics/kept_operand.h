// The matrix that was kept with its factor, as an operand.
#ifndef CROUT_KERNELS_NUMERICS_KEPT_OPERAND_H_
#define CROUT_KERNELS_NUMERICS_KEPT_OPERAND_H_

#include <memory>

#include "kernels/factorization.h"
#include "kernels/operand.h"

namespace crout {

// A as it arrived, dense or sparse as it was kept: the one place that knows. Borrows the
// factorization. Where no matrix was kept only order() and NormInf() may be asked for.
std::unique_ptr<const Operand> KeptOperand(const Factorization& factor);

}  // namespace crout

#endif  // CROUT_KERNELS_NUMERICS_KEPT_OPERAND_H_
