#include "kernels/numerics/correction.h"

#include "kernels/numerics/refinement.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Steps of refinement that gain less than that leave the rest to GMRES, whose cycles cost a product
// and orthogonalizations more than as many steps, and which then needs fewer of them.
constexpr double kRefinementGain = 300;

}  // namespace

absl::StatusOr<int> Correct(ExecutionContext& context, ResidualCheck& check,
                            InverseOperator& inverse, const GmresLimits& limits,
                            const GmresMemory& memory, StopRequested stop) {
  RefinementLimits refinement{
      .max_steps = limits.max_iterations, .enough = limits.enough, .least_gain = kRefinementGain};
  CROUT_ASSIGN_OR_RETURN(const int first,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  GmresLimits left = limits;
  left.max_iterations -= first;
  CROUT_ASSIGN_OR_RETURN(const GmresResult gmres,
                         Gmres(context, check, inverse, left, memory, stop));
  const int applied = first + gmres.iterations;
  if (!check.wide_range()) return applied;
  // Near the end of the range only residuals are known well enough.
  refinement = {.max_steps = limits.max_iterations, .enough = limits.enough};
  CROUT_ASSIGN_OR_RETURN(const int last,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  return applied + last;
}

}  // namespace crout
