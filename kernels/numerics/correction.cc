#include "kernels/numerics/correction.h"

#include <algorithm>
#include <cmath>

#include "kernels/device.h"
#include "kernels/numerics/refinement.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// Steps of refinement that gain less than that leave the rest to GMRES, whose cycles cost a product
// and orthogonalizations more than as many steps, and which then needs fewer of them.
constexpr double kRefinementGain = 300;
// What is left to GMRES takes it at least two thirds of the steps that refinement would need, each
// at least as dear, and its cycle. So up to three times the price of a cycle refinement costs less.
constexpr double kStepsOfACycle = 3;
// Beyond, what a step gains tells too little of the ones to come.
constexpr double kMostSteps = 8;
// An iteration of GMRES gains at most what as many steps of refinement do, where those gain little.
constexpr double kStepsOfAnIteration = 4;
// Not where they gain next to nothing: a few directions in which the inverse is far off hold
// refinement up, and GMRES is through with them in as many iterations.
constexpr double kTellingGain = 1.5;

// What a cycle of GMRES costs beside its iterations, in steps of refinement of order n: half of one
// for the product, and on a GPU what its calls wait for each other and for the host. Measured on an
// H100: 0.4 ms, where a step takes 0.075 ms at n = 1024 and 0.45 at 8192. Not the times of this
// machine: the same input is to give the same bits.
double CyclePrice(ExecutionContext& context, int64_t n) {
  constexpr double kProduct = 0.5;
  if (context.device().info().kind == DeviceKind::kHost) return kProduct;
  const auto order = static_cast<double>(n);
  return kProduct + 4e-4 / (7e-5 + 5.7e-12 * order * order);
}

}  // namespace

absl::StatusOr<int> Correct(ExecutionContext& context, ResidualCheck& check,
                            InverseOperator& inverse, const GmresLimits& limits,
                            const GmresMemory& memory, StopRequested stop) {
  const double few = kStepsOfACycle * CyclePrice(context, check.system().x.rows);
  // A step that is to be given up is not made longer.
  RefinementLimits refinement{.max_steps = limits.max_iterations,
                              .enough = limits.enough,
                              .least_gain = kRefinementGain,
                              .few_steps = std::min({few, kMostSteps, limits.most_left})};
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
