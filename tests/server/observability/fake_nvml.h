// SPDX-License-Identifier: Apache-2.0

// A fake NVML library. Test programs load it in place of NVIDIA's and set its answers.
#ifndef CROUT_TESTS_SERVER_OBSERVABILITY_FAKE_NVML_H_
#define CROUT_TESTS_SERVER_OBSERVABILITY_FAKE_NVML_H_

namespace crout {

// Answers for the library's only GPU, at "0000:5d:00.0".
struct FakeNvmlState {
  int init_result = 0;         // result of nvmlInit_v2
  bool reports_power = true;   // false: NOT_SUPPORTED, as on a virtual GPU
  bool reports_events = true;  // the same for Xid events
  bool lost = false;           // every query returns GPU_IS_LOST
  unsigned temperature = 61;
};

// Functions by which a test controls the library. Resolve them with dlsym().
extern "C" {
using FakeNvmlSet = void(const FakeNvmlState* state);
using FakeNvmlRaise = void(unsigned long long xid);  // raises an Xid error of the GPU
using FakeNvmlOpen = int();                          // returns nvmlInit calls without a shutdown
}

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_OBSERVABILITY_FAKE_NVML_H_
