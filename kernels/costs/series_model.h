// When a series is to go on with its old factor, and when to make a new one.
#ifndef CROUT_KERNELS_COSTS_SERIES_MODEL_H_
#define CROUT_KERNELS_COSTS_SERIES_MODEL_H_

#include <cstdint>

namespace crout {

// Seconds, and the iterations that stand for them: decisions are made in units of an iteration with
// the old factor (a solve, a product and their share of the orthogonalization).
//
// Steps since the last factorization are its age. Iterations grow with age; a factorization costs
// `factor` seconds once. What minimizes the seconds of a step on average is to go on while the next
// step is predicted to cost no more than the average of the cycle so far, its factorization
// included (the marginal rule of age replacement; Barlow and Hunter 1960). What the next step costs
// is taken from the growth in this cycle, or at age 0 from the first step of the last one.
//
// No step costs much more than twice what a factorization would have: the iterations after which a
// step is given up are those that a factorization costs. Where reuse does not pay at any age it is
// tried again now and then, more and more rarely.
//
// Not thread-safe.
class SeriesModel {
 public:
  // What both are predicted to cost before anything was measured; above 0. Measured seconds take
  // their place; those that are not above 0 are left out.
  SeriesModel(double factor_seconds, double iteration_seconds);

  // Iterations with the old factor that the next step may take; 0: make a new one at once.
  int Budget() const;

  // A step was solved with the old factor.
  void Reused(int iterations, double seconds);
  // A new factor was made, in so many seconds, the solve with it included, after `iterations` with
  // the old one in `wasted_seconds`; both may be 0.
  void Refactored(double seconds, int iterations, double wasted_seconds);

  int64_t age() const { return age_; }
  double iteration_seconds() const { return iteration_seconds_; }
  double factor_seconds() const { return factor_seconds_; }

 private:
  // Seconds of the next step with the old factor; negative: nothing is known.
  double PredictReuse() const;
  double AverageSoFar() const;
  void MeasureIteration(int iterations, double seconds);

  double factor_seconds_;
  double iteration_seconds_;
  int64_t age_ = 0;           // steps since the last factorization
  double cycle_seconds_ = 0;  // with that factorization
  double last_ = 0;           // seconds of the last reuse of this cycle, and of the one before
  double before_last_ = 0;
  double first_ = -1;  // of the first reuse of a cycle, as last seen; negative: not yet
  int refactored_in_a_row_ = 0;
  int try_again_after_ = kFirstPatience;  // factorizations in a row, after which reuse is tried

  static constexpr int kFirstPatience = 16;
  static constexpr int kLongestPatience = 64;
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_SERIES_MODEL_H_
