// SPDX-License-Identifier: Apache-2.0

// MUMPS's C interface for the four element types.
#ifndef CROUT_RANK_MUMPS_H_
#define CROUT_RANK_MUMPS_H_

#include <cmumps_c.h>
#include <dmumps_c.h>
#include <smumps_c.h>
#include <zmumps_c.h>

#include <complex>
#include <cstdint>
#include <type_traits>

namespace crout::rank {

template <class T>
struct MumpsApi;
template <>
struct MumpsApi<float> {
  using Parameters = SMUMPS_STRUC_C;
  static void Call(Parameters* parameters) { smumps_c(parameters); }
};
template <>
struct MumpsApi<double> {
  using Parameters = DMUMPS_STRUC_C;
  static void Call(Parameters* parameters) { dmumps_c(parameters); }
};
template <>
struct MumpsApi<std::complex<float>> {
  using Parameters = CMUMPS_STRUC_C;
  static void Call(Parameters* parameters) { cmumps_c(parameters); }
};
template <>
struct MumpsApi<std::complex<double>> {
  using Parameters = ZMUMPS_STRUC_C;
  static void Call(Parameters* parameters) { zmumps_c(parameters); }
};

// Values of the parameter `job`.
inline constexpr int kMumpsStart = -1;
inline constexpr int kMumpsEnd = -2;
inline constexpr int kMumpsAnalyze = 1;
inline constexpr int kMumpsFactor = 2;
inline constexpr int kMumpsSolve = 3;

// Value of `comm_fortran` for MPI_COMM_WORLD.
inline constexpr int kMumpsWorld = -987654;

// INFOG(1): the memory limit is too small.
inline constexpr int kMumpsLimitTooSmall = -19;

// One object of the library, for one matrix. All ranks create, use and destroy it together.
template <class T>
class Mumps {
 public:
  using Parameters = typename MumpsApi<T>::Parameters;
  using Value = std::remove_pointer_t<decltype(Parameters::a)>;

  Mumps() {
    parameters_.par = 1;  // rank 0 works too
    parameters_.sym = 0;
    parameters_.comm_fortran = kMumpsWorld;
    Run(kMumpsStart);
    for (int output = 1; output <= 4; ++output) Control(output) = 0;  // no messages
  }
  ~Mumps() { Run(kMumpsEnd); }
  Mumps(const Mumps&) = delete;  // The library stores its state in `parameters_`.
  Mumps& operator=(const Mumps&) = delete;

  // Runs a phase. Returns false after an error.
  bool Run(int job) {
    parameters_.job = job;
    MumpsApi<T>::Call(&parameters_);
    return info(1) >= 0;
  }

  Parameters& parameters() { return parameters_; }
  // ICNTL(index) and INFOG(index) of the manual.
  int& Control(int index) { return parameters_.icntl[index - 1]; }
  int info(int index) const { return parameters_.infog[index - 1]; }
  // Same, for counts that may exceed an int: negative values are millions.
  int64_t Count(int index) const {
    constexpr int64_t kMillion = 1000000;
    return info(index) < 0 ? -kMillion * info(index) : info(index);
  }

 private:
  Parameters parameters_ = {};
};

}  // namespace crout::rank

#endif  // CROUT_RANK_MUMPS_H_
