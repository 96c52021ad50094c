// SPDX-License-Identifier: Apache-2.0

// A fake NVML library. Test programs load it in place of NVIDIA's library and set its answers.
#ifndef CROUT_TESTS_SERVER_OBSERVABILITY_FAKE_NVML_H_
#define CROUT_TESTS_SERVER_OBSERVABILITY_FAKE_NVML_H_

namespace crout {

// Answers of the library, which has one GPU at PCI address "0000:5d:00.0".
struct FakeNvmlState {
  int init_result = 0;         // result of nvmlInit_v2
  bool reports_power = true;   // false: returns NOT_SUPPORTED, as for a virtual GPU
  bool reports_events = true;  // the same for events of Xid errors
  bool lost = false;           // every query returns GPU_IS_LOST
  unsigned temperature = 61;   // degrees Celsius
};

// Types of the functions that control the library: crout_fake_nvml_set, crout_fake_nvml_raise and
// crout_fake_nvml_open. Resolve them with dlsym(). Thread-safe.
extern "C" {
using FakeNvmlSet = void(const FakeNvmlState* state);
using FakeNvmlRaise = void(unsigned long long xid);  // raises an Xid error of the GPU
using FakeNvmlOpen = int();  // returns the number of nvmlInit calls without a shutdown
}

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_OBSERVABILITY_FAKE_NVML_H_
