// How long the phases of a call took.
#ifndef CROUT_SERVER_CALL_TIMINGS_H_
#define CROUT_SERVER_CALL_TIMINGS_H_

namespace crout {

// Seconds, as in the contract's Timings, which says what each phase holds.
struct CallTimings {
  double receive = 0;
  double queue = 0;
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
  double send = 0;
  double total = 0;
};

}  // namespace crout

#endif  // CROUT_SERVER_CALL_TIMINGS_H_
