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
// GMRES needs at least so much of the steps that refinement would.
constexpr double kShareOfSteps = 2.0 / 3;
// Beyond, what a step gains tells too little of the ones to come.
constexpr double kMostSteps = 8;
// An iteration of GMRES gains at most what as many steps of refinement do, where those gain little.
constexpr double kStepsOfAnIteration = 4;
// Not where they gain next to nothing: a few directions in which the inverse is far off hold
// refinement up, and GMRES is through with them in as many iterations.
constexpr double kTellingGain = 1.5;

// What GMRES costs, in steps of refinement.
struct GmresPrice {
  double cycle = 0;  // beside its iterations
  double iteration = 0;
};

// Of order n. A cycle takes half a step for the product, and an iteration a step; on a GPU both
// wait for more calls, and those for each other and for the host. Measured on an H100 with dense
// matrices, of a step, an iteration, and a cycle beside its iterations: 0.075, 0.16 and 0.14 ms at
// n = 1024, 0.47, 0.62 and 0.33 at 8192. A sparse matrix counts as a dense one of its order: what
// its steps wait for its factor's structure tells, and nothing of that was measured. Not the times
// of this machine: the same input is to give the same bits.
GmresPrice PriceOfGmres(ExecutionContext& context, int64_t n) {
  constexpr double kProduct = 0.5;
  if (context.device().info().kind == DeviceKind::kHost) return {kProduct, 1};
  const auto order = static_cast<double>(n);
  const double step = 7e-5 + 5.7e-12 * order * order;
  return {kProduct + 1e-4 / step, 1 + (7.5e-5 + 1e-8 * order) / step};
}

// The least cost of lowering an error from `error` to `enough` where a step of refinement gains so
// much. 0 at the goal.
double LeastLeft(double error, double enough, double gain, const GmresPrice& price) {
  if (!(error > enough)) return 0;
  // Where the gain tells nothing, one iteration may do.
  if (!(gain > kTellingGain)) return price.cycle + price.iteration;
  const double iterations = IterationsLeft(error, enough, std::pow(gain, kStepsOfAnIteration));
  return std::min(IterationsLeft(error, enough, gain),
                  price.cycle + std::max(iterations, 1.0) * price.iteration);
}

// The most steps of refinement that cost less than what GMRES would need in their place.
double FewSteps(const GmresPrice& price) {
  const double saved = 1 - kShareOfSteps * price.iteration;  // by GMRES, of each step
  return saved > 0 ? std::min(price.cycle / saved, kMostSteps) : kMostSteps;
}

}  // namespace

absl::StatusOr<Correction> Correct(ExecutionContext& context, ResidualCheck& check,
                                   InverseOperator& inverse, const GmresLimits& limits,
                                   const GmresMemory& memory, StopRequested stop) {
  const GmresPrice price = PriceOfGmres(context, check.system().x.rows);
  Correction done;
  // Steps of refinement that may still be done.
  const auto steps = [&] {
    return static_cast<int>(
        std::min<double>(limits.max_iterations - done.iterations, limits.most_cost - done.cost));
  };
  // A step that is to be given up is not made longer.
  RefinementLimits refinement{.max_steps = steps(),
                              .enough = limits.enough,
                              .least_gain = kRefinementGain,
                              .few_steps = std::min(FewSteps(price), limits.most_left)};
  const double begin = check.errors().normwise;
  if (limits.known_gain > 0 && limits.least_iterations <= 0 &&
      LeastLeft(begin, limits.enough, limits.known_gain, price) > limits.most_left) {
    return done;
  }
  CROUT_ASSIGN_OR_RETURN(const Refinement first,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  done.iterations = first.applications;
  done.cost = first.applications;
  const double now = check.errors().normwise;
  if (!(now > limits.enough)) return done;
  const double gain = std::pow(begin / now, 1.0 / std::max(first.corrections, 1));
  if (done.iterations >= limits.least_iterations &&
      LeastLeft(now, limits.enough, gain, price) > limits.most_left) {
    return done;
  }
  GmresLimits left = limits;
  left.max_iterations -= done.iterations;
  left.least_iterations -= done.iterations;
  left.most_left /= price.iteration;
  left.most_cost = (limits.most_cost - done.cost) / price.iteration;
  left.cycle_cost = price.cycle / price.iteration;
  CROUT_ASSIGN_OR_RETURN(const GmresResult gmres,
                         Gmres(context, check, inverse, left, memory, stop));
  done.iterations += gmres.iterations;
  done.cost += gmres.cycles * price.cycle + gmres.iterations * price.iteration;
  if (!check.wide_range() || gmres.given_up) return done;
  // Near the end of the range only residuals are known well enough.
  refinement = {.max_steps = steps(), .enough = limits.enough};
  CROUT_ASSIGN_OR_RETURN(const Refinement last,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  done.iterations += last.applications;
  done.cost += last.applications;
  return done;
}

}  // namespace crout
