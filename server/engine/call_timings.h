// SPDX-License-Identifier: Apache-2.0

// Durations of the phases of a call.
#ifndef CROUT_SERVER_ENGINE_CALL_TIMINGS_H_
#define CROUT_SERVER_ENGINE_CALL_TIMINGS_H_

#include "kernels/factorization.h"

namespace crout {

// Times in seconds. The Timings message of the protocol has the same fields and defines the phases.
struct CallTimings {
  double receive = 0;
  double queue = 0;
  double analyze = 0;
  double host_to_device = 0;
  double factor = 0;
  double solve = 0;
  double refine = 0;
  double device_to_host = 0;
  double send = 0;
  double total = 0;

  // Adds the timings of a job that the call ran.
  void Add(const KernelTimings& job) {
    factor += job.factor;
    solve += job.solve;
    refine += job.refine;
    device_to_host += job.device_to_host;
  }
};

}  // namespace crout

#endif  // CROUT_SERVER_ENGINE_CALL_TIMINGS_H_
