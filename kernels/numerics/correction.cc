#include "kernels/numerics/correction.h"

#include <algorithm>
#include <cmath>

#include "kernels/numerics/refinement.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Steps of refinement that gain less than that leave the rest to GMRES, whose cycles cost a product
// and orthogonalizations more than as many steps, and which then needs fewer of them.
constexpr double kRefinementGain = 300;
// An iteration of GMRES gains at most what as many steps of refinement do, where those gain little.
constexpr double kStepsOfAnIteration = 4;
// Not where they gain next to nothing: a few directions in which the inverse is far off hold
// refinement up, and GMRES is through with them in as many iterations.
constexpr double kTellingGain = 1.5;

}  // namespace

absl::StatusOr<int> Correct(ExecutionContext& context, ResidualCheck& check,
                            InverseOperator& inverse, const GmresLimits& limits,
                            const GmresMemory& memory, StopRequested stop) {
  RefinementLimits refinement{
      .max_steps = limits.max_iterations, .enough = limits.enough, .least_gain = kRefinementGain};
  const double begin = check.errors().normwise;
  CROUT_ASSIGN_OR_RETURN(const int first,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  const double now = check.errors().normwise;
  const double gain = std::pow(begin / now, 1.0 / std::max(first, 1));
  if (first >= limits.least_iterations && gain > kTellingGain &&
      IterationsLeft(now, limits.enough, std::pow(gain, kStepsOfAnIteration)) > limits.most_left) {
    return first;
  }
  GmresLimits left = limits;
  left.max_iterations -= first;
  left.least_iterations -= first;
  CROUT_ASSIGN_OR_RETURN(const GmresResult gmres,
                         Gmres(context, check, inverse, left, memory, stop));
  const int applied = first + gmres.iterations;
  if (!check.wide_range() || gmres.given_up) return applied;
  // Near the end of the range only residuals are known well enough.
  refinement = {.max_steps = limits.max_iterations, .enough = limits.enough};
  CROUT_ASSIGN_OR_RETURN(const int last,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  return applied + last;
}

}  // namespace crout
