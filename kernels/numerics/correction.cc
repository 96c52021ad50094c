// SPDX-License-Identifier: Apache-2.0

#include "kernels/numerics/correction.h"

#include <algorithm>
#include <cmath>

#include "kernels/device.h"
#include "kernels/numerics/refinement.h"
#include "kernels/util/status_macros.h"

namespace crout {
namespace {

// If a refinement step reduces the error by less than this factor, GMRES continues, because it
// needs fewer steps. A GMRES cycle costs a product and orthogonalizations more than the same number
// of refinement steps.
constexpr double kRefinementGain = 300;
// Lower bound of the GMRES iterations, as a fraction of the refinement steps that they replace.
constexpr double kMinIterationFraction = 2.0 / 3;
// Beyond this many steps, the gain of one step predicts too little about later steps.
constexpr double kMaxSteps = 8;
// Upper bound of the refinement steps that one GMRES iteration replaces if steps gain little.
constexpr double kMaxStepsPerIteration = 4;
// Smallest gain for which that bound holds. At smaller gains, a few directions in which the inverse
// is inaccurate delay refinement, and GMRES resolves them in as many iterations.
constexpr double kSignificantGain = 1.5;

// Cost of GMRES in refinement steps.
struct GmresCost {
  double cycle = 0;  // in addition to its iterations
  double iteration = 0;
};

// Returns the cost for order n. A cycle adds half a step for its product, and an iteration costs a
// step. On a GPU both add the latency of further calls, which wait for each other and for the host.
//
// Measured on an H100 with dense matrices, in ms for a step, an iteration, and a cycle besides its
// iterations: 0.075, 0.16 and 0.14 at n = 1024; 0.47, 0.62 and 0.33 at n = 8192. A sparse matrix
// counts as a dense one of its order: the latency of its steps depends on the structure of its
// factor and was not measured. The model uses fixed constants rather than timings of this machine,
// because the same input must give the same bits.
GmresCost PredictGmresCost(ExecutionContext& context, int64_t n) {
  constexpr double kProduct = 0.5;
  if (context.device().info().kind == DeviceKind::kHost) return {kProduct, 1};
  const auto order = static_cast<double>(n);
  const double step = 7e-5 + 5.7e-12 * order * order;
  return {kProduct + 1e-4 / step, 1 + (7.5e-5 + 1e-8 * order) / step};
}

// Returns the smallest cost of reducing an error from `error` to `enough` if a refinement step
// gains the factor `gain`. 0 if the goal is reached.
double MinRemainingCost(double error, double enough, double gain, const GmresCost& price) {
  if (!(error > enough)) return 0;
  // A small gain predicts nothing: one iteration may suffice.
  if (!(gain > kSignificantGain)) return price.cycle + price.iteration;
  const double iterations = IterationsLeft(error, enough, std::pow(gain, kMaxStepsPerIteration));
  return std::min(IterationsLeft(error, enough, gain),
                  price.cycle + std::max(iterations, 1.0) * price.iteration);
}

// Returns the largest number of refinement steps that is cheaper than GMRES in their place.
double MaxRefinementSteps(const GmresCost& price) {
  const double saved =
      1 - kMinIterationFraction * price.iteration;  // saved by GMRES per replaced step
  return saved > 0 ? std::min(price.cycle / saved, kMaxSteps) : kMaxSteps;
}

}  // namespace

absl::StatusOr<Correction> Correct(ExecutionContext& context, ResidualCheck& check,
                                   InverseOperator& inverse, const GmresLimits& limits,
                                   const GmresMemory& memory, StopRequested stop) {
  const GmresCost price = PredictGmresCost(context, check.system().x.rows);
  Correction done;
  // Refinement steps that the limits still allow.
  const auto steps = [&] {
    return static_cast<int>(
        std::min<double>(limits.max_iterations - done.iterations, limits.max_cost - done.cost));
  };
  // `few_steps` is also at most max_remaining: refinement with a small gain must not continue if
  // its remaining steps exceed that limit.
  RefinementLimits refinement{
      .max_steps = steps(),
      .tolerance = limits.tolerance,
      .min_gain = kRefinementGain,
      .few_steps = std::min(MaxRefinementSteps(price), limits.max_remaining)};
  const double begin = check.errors().normwise;
  if (limits.known_gain > 0 && limits.min_iterations <= 0 &&
      MinRemainingCost(begin, limits.tolerance, limits.known_gain, price) > limits.max_remaining) {
    return done;
  }
  CROUT_ASSIGN_OR_RETURN(const Refinement first,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  done.iterations = first.applications;
  done.cost = first.applications;
  const double now = check.errors().normwise;
  if (!(now > limits.tolerance)) return done;
  const double gain = std::pow(begin / now, 1.0 / std::max(first.corrections, 1));
  if (done.iterations >= limits.min_iterations &&
      MinRemainingCost(now, limits.tolerance, gain, price) > limits.max_remaining) {
    return done;
  }
  GmresLimits left = limits;
  left.max_iterations -= done.iterations;
  left.min_iterations -= done.iterations;
  left.max_remaining /= price.iteration;
  left.max_cost = (limits.max_cost - done.cost) / price.iteration;
  left.cycle_cost = price.cycle / price.iteration;
  CROUT_ASSIGN_OR_RETURN(const GmresResult gmres,
                         Gmres(context, check, inverse, left, memory, stop));
  done.iterations += gmres.iterations;
  done.cost += gmres.cycles * price.cycle + gmres.iterations * price.iteration;
  if (!check.wide_range() || gmres.given_up) return done;
  // Near the end of the range, only residuals are accurate enough.
  refinement = {.max_steps = steps(), .tolerance = limits.tolerance};
  CROUT_ASSIGN_OR_RETURN(const Refinement last,
                         Refine(context, check, inverse, refinement, memory.previous, stop));
  done.iterations += last.applications;
  done.cost += last.applications;
  return done;
}

}  // namespace crout
