// When a series is to go on with its old factor, and when to make a new one.
#ifndef CROUT_KERNELS_COSTS_SERIES_MODEL_H_
#define CROUT_KERNELS_COSTS_SERIES_MODEL_H_

#include <array>
#include <cstdint>
#include <limits>

namespace crout {

// Seconds of a thing that is done again and again: the least of the last four times. What had to
// wait for others does not count, and a device that has become slower is known as such after four.
class RecentSeconds {
 public:
  // `predicted` is what there is before anything was measured.
  explicit RecentSeconds(double predicted) : seconds_(predicted) {}

  // Not above 0: left out.
  void Add(double seconds);

  double seconds() const { return seconds_; }
  bool measured() const { return count_ > 0; }

 private:
  static constexpr double kNone = std::numeric_limits<double>::infinity();

  std::array<double, 4> last_ = {kNone, kNone, kNone, kNone};
  int64_t count_ = 0;
  double seconds_;
};

// What a step may spend with the old factor.
struct SeriesBudget {
  int iterations = 0;    // at most; 0: a new factor is made at once
  double most_left = 0;  // it is given up where what seems to be left costs more than that
  int least = 0;         // but not before as many iterations
  double most_cost = std::numeric_limits<double>::infinity();  // of all, whatever seems to be left
};

// What was done with an old factor.
struct SeriesTry {
  int iterations = 0;
  double cost = 0;  // theirs, above 0 where there are any
  double seconds = 0;
};

// Costs are counted in steps of refinement with the old factor (a solve and a product; iterations
// of GMRES count as several where their calls wait for each other), which do not vary with the load
// of the machine; a factorization is worth as many as take its seconds, both as measured.
//
// Steps since the last factorization are its age, and iterations grow with it. Seconds of a step
// are least on average where a new factor is made when the next step with the old one would cost
// more than the average of its steps and its factorization so far (the marginal rule of age
// replacement: Barlow and Hunter 1960). So that single slow steps of an old factor decide nothing,
// nor a few in a row, what steps cost beyond the one that took least, since it, has to add up to
// 1.4 factorizations as well; but not where one step alone costs as much beyond it as a
// factorization: then a new factor costs no more than the next such step.
//
// A step is given up where what seems to be left of it costs more than a factorization, whatever
// was spent: as a rule after two iterations or three. Where few directions hold iterations up the
// first of them tell little, and what the step before took tells more: no step is given up before
// as many. It ends at twice what a factorization is worth at the latest, or at a cost of four where
// that is more: less tells nothing. Where reuse does not pay at any age it is tried again now and
// then, at first as soon as what the last try cost is little beside the factorizations since, then
// more and more rarely. Where it did serve, and seconds measured since say that it does not pay, it
// is tried again soon, for twice what it took: those can be wrong, and no others come.
//
// Not thread-safe.
class SeriesModel {
 public:
  // What both are predicted to cost before anything was measured; above 0. Measured seconds take
  // their place; those that are not above 0 are left out.
  SeriesModel(double factor_seconds, double iteration_seconds);

  // How long the next step should try the factor that is there.
  SeriesBudget Budget() const;

  // A step was solved with the old factor.
  void Reused(const SeriesTry& tried);
  // A new factor was made, in so many seconds, the solve with it included, after the old one had
  // been `tried`, if it had.
  void Refactored(double seconds, const SeriesTry& tried);
  // There was no solution: a factor was made, and dropped because it is singular, after the old
  // one, which stays, had been `tried`. Says nothing of the next step.
  void Unsolved(const SeriesTry& tried) { MeasureCost(tried); }

  int64_t age() const { return age_; }
  double cost_seconds() const { return cost_.seconds(); }  // of a cost of 1
  double factor_seconds() const { return factor_.seconds(); }

 private:
  static constexpr int kYoung = 3;  // steps
  // Factorizations in a row before reuse is tried again: at first, after a failure, at the most.
  static constexpr int kLeastPatience = 1;
  static constexpr int kPatienceAfterFailure = 16;  // the most after the first one
  static constexpr int kLongestPatience = 64;

  // What a factorization costs.
  double Worth() const { return factor_.seconds() / cost_.seconds(); }
  // An older factor has served, when it was tried last.
  bool HasServed() const;
  bool PaysToGoOn() const;
  void MeasureCost(const SeriesTry& tried);

  RecentSeconds factor_;
  RecentSeconds cost_;
  // Of this cycle, from the last factorization on; costs.
  int64_t age_ = 0;
  double spent_ = 0;
  double beyond_ = 0;  // what is beyond least_, since a step took no more
  double recent_ = 0;  // of a step, lately
  double least_ = 0;   // of a step
  double last_ = 0;
  double before_last_ = 0;
  double growth_ = 0;        // in a step, the less of the last two: one alone may be a jump
  int last_iterations_ = 0;  // of the last step
  // What follows is of all cycles, from one factorization to the next.
  // Cost of a cycle's first step, as last seen; below 0: not yet; infinite: it did not serve.
  double first_ = -1;
  int first_iterations_ = 0;  // if it served
  int refactored_in_a_row_ = 0;
  int patience_ = kLeastPatience;  // factorizations in a row, after which reuse is tried
};

}  // namespace crout

#endif  // CROUT_KERNELS_COSTS_SERIES_MODEL_H_
