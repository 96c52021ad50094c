// SPDX-License-Identifier: Apache-2.0

// Decides whether a series continues with its old factor or makes a new one.
#ifndef CROUT_KERNELS_COSTS_SERIES_MODEL_H_
#define CROUT_KERNELS_COSTS_SERIES_MODEL_H_

#include <array>
#include <cstdint>
#include <limits>

namespace crout {

// Seconds of a repeated operation: the minimum of the last four measurements. The minimum excludes
// time spent waiting for other work, and follows a device that became slower after four
// measurements.
class RecentSeconds {
 public:
  // `predicted` is used until a measurement exists.
  explicit RecentSeconds(double predicted) : seconds_(predicted) {}

  // Adds a measurement. Values not above 0 are ignored.
  void Add(double seconds);

  double seconds() const { return seconds_; }
  bool measured() const { return count_ > 0; }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  std::array<double, 4> last_ = {kNone, kNone, kNone, kNone};
  int64_t count_ = 0;
  double seconds_;
};

// Limits of a step with the old factor.
struct SeriesBudget {
  int iterations = 0;        // iteration limit; 0: make a new factor at once
  double max_remaining = 0;  // give up if the estimated remaining cost exceeds this
  int least = 0;             // but not before this many iterations
  // Limit of the total cost, whatever the remaining cost.
  double max_cost = std::numeric_limits<double>::infinity();
};

// An attempt with an old factor.
struct SeriesAttempt {
  int iterations = 0;
  double cost = 0;  // cost of the iterations; above 0 if there are any
  double seconds = 0;
};

// Costs are counted in refinement steps with the old factor: one solve and one product. Iterations
// of GMRES count as several if their calls wait for each other. This unit does not vary with the
// load of the machine. The worth of a factorization is its measured seconds over those of a
// refinement step.
//
// The age of a factor is the number of steps since its factorization; iterations grow with age. Let
// m be the mean cost of a step with the old factor so far, its factorization included. The mean
// time per step is minimal if a new factor is made when the next step with the old factor would
// cost more than m (the marginal rule of age replacement, Barlow and Hunter 1960).
//
// A few slow steps of an old factor must not trigger a new factorization. Therefore the cost in
// excess of the cheapest step, accumulated since the last step that was as cheap, must also reach
// 1.4 factorizations. The exception is a single step that costs at least a whole factorization more
// than the cheapest: a new factor then costs no more than the next such step.
//
// Within a step, the attempt is given up when its estimated remaining cost exceeds a factorization,
// whatever was spent: usually after two or three iterations. If a few directions delay convergence,
// the first iterations predict little and the previous step predicts more. Therefore no step is
// given up before it has made as many iterations as the previous step. A step ends at the latest at
// a cost of two factorizations, or of 4 if that is more, because a cheaper attempt is not
// informative.
//
// If reuse does not pay at any age, it is retried at growing intervals. The first retry comes once
// the cost of the last attempt is small against the factorizations since. If reuse has converged
// but was slower by measurement, it is retried soon, with twice its previous cost as the limit.
// Those measurements may be wrong, and only a retry gives new ones.
//
// Not thread-safe.
class SeriesModel {
 public:
  // Takes predicted seconds, above 0, for use until measurements exist. Measurements not above 0
  // are ignored.
  SeriesModel(double factor_seconds, double iteration_seconds);

  // Returns the limits for the next step with the current factor.
  SeriesBudget Budget() const;

  // Records a step that was solved with the old factor.
  void RecordReuse(const SeriesAttempt& tried);
  // Records a new factor. `seconds` includes the solve with it. `tried` is the preceding attempt
  // with the old factor, if there was one.
  void RecordRefactorization(double seconds, const SeriesAttempt& tried);
  // Records a step without a solution: the new factor was singular and was dropped, and the old
  // one, which was `tried` before, remains. Does not affect the next step.
  void RecordFailure(const SeriesAttempt& tried) { MeasureCost(tried); }

  int64_t age() const { return age_; }
  double cost_seconds() const { return cost_.seconds(); }  // seconds per unit of cost
  double factor_seconds() const { return factor_.seconds(); }

 private:
  static constexpr int kYoungAge = 3;  // steps
  // Number of consecutive factorizations before reuse is retried: initial, after a failure,
  // maximum.
  static constexpr int kMinPatience = 1;
  static constexpr int kPatienceAfterFailure = 16;  // upper bound after the first failure
  static constexpr int kMaxPatience = 64;

  // Returns the cost of a factorization.
  double FactorizationCost() const { return factor_.seconds() / cost_.seconds(); }
  // Returns true if an earlier factor served when it was last tried.
  bool LastReuseSucceeded() const;
  bool IsReuseCheaper() const;
  void MeasureCost(const SeriesAttempt& tried);

  RecentSeconds factor_;
  RecentSeconds cost_;
  // Costs of this cycle, which began with the last factorization.
  int64_t age_ = 0;
  double spent_ = 0;
  double beyond_ = 0;  // accumulated cost beyond least_, since a step last cost least_
  double recent_ = 0;  // moving average over recent steps
  double least_ = 0;   // cheapest step
  double last_ = 0;
  double before_last_ = 0;
  // Increase per step: the smaller of the last two, because one alone may be a jump.
  double growth_ = 0;
  int last_iterations_ = 0;  // in the last step
  // The following members span all cycles. `first_` is the most recent cost of a cycle's first
  // step; negative: none yet; infinite: it did not converge.
  double first_ = -1;
  int first_iterations_ = 0;  // valid if it converged
  int refactored_in_a_row_ = 0;
  int patience_ = kMinPatience;  // consecutive factorizations after which reuse is retried
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_SERIES_MODEL_H_
