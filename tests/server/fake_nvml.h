// A library with NVML's names that test programs load in its place, and tell what to say.
#ifndef CROUT_TESTS_SERVER_FAKE_NVML_H_
#define CROUT_TESTS_SERVER_FAKE_NVML_H_

namespace crout {

// What the GPU at "0000:5d:00.0", the library's only one, says from now on.
struct FakeNvmlState {
  int init_result = 0;       // of nvmlInit_v2
  bool tells_power = true;   // false: NOT_SUPPORTED, as on a virtual GPU
  bool tells_events = true;  // likewise, of Xid errors
  bool lost = false;         // every question ends with GPU_IS_LOST
  unsigned temperature = 61;
};

// The library's own functions, by which a test speaks to it: found with dlsym().
extern "C" {
using FakeNvmlSet = void(const FakeNvmlState* state);
using FakeNvmlRaise = void(unsigned long long xid);  // an Xid error of the GPU
using FakeNvmlOpen = int();                          // inits without their shutdown
}

}  // namespace crout

#endif  // CROUT_TESTS_SERVER_FAKE_NVML_H_
