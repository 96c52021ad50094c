// SPDX-License-Identifier: Apache-2.0

// The calls and the phases of the fault matrix.
#ifndef CROUT_TESTS_SERVER_RPC_FAULTS_CALL_KIND_H_
#define CROUT_TESTS_SERVER_RPC_FAULTS_CALL_KIND_H_

#include <array>
#include <string_view>

namespace crout::testing {

enum class CallKind {
  kFactorize,
  kFactorizeDurable,
  kFactorizeSparse,
  kFactorizeText,
  kFactorizeBatch,
  kRefactorize,
  kRefactorizeDurable,
  kSolve,
  kSolveBatch,
  kFactorizeAndSolve,
  kFactorizeAndSolveBatch,
  kDirect,
  kSchur,
  kEchelon,
  kSeries,
  kGetFactors,
  kListFactors,
  kDescribeFactor,
  kRenewLease,
  kReleaseFactor,
  kEstimateFactorize,
  kGetServerInfo,
};
inline constexpr int kCallKinds = 22;

// Parts of a call of a kind that a phase may need.
struct CallTraits {
  const char* name;
  std::string_view job = "";       // failpoint in its job; "": it has no job
  std::string_view analysis = "";  // failpoint in the analysis of its payload; "": it has none
  bool has_payload = true;
  bool stores = false;    // writes a file before it replies
  bool replaces = false;  // replaces the factor of its handle
  bool releases = false;  // releases the factor of its handle
  bool is_batch = false;
};

inline constexpr std::array<CallTraits, kCallKinds> kCallTraits = {{
    {.name = "Factorize", .job = "factorize.factor"},
    {.name = "FactorizeDurable", .job = "factorize.factor", .stores = true},
    {.name = "FactorizeSparse", .job = "factorize.factor", .analysis = "sparse.analyze"},
    {.name = "FactorizeText", .job = "factorize.factor", .analysis = "upload.parse"},
    {.name = "FactorizeBatch", .job = "factorize.factor", .is_batch = true},
    {.name = "Refactorize", .job = "factorize.factor", .replaces = true},
    {.name = "RefactorizeDurable", .job = "factorize.factor", .stores = true, .replaces = true},
    {.name = "Solve", .job = "solve.run"},
    {.name = "SolveBatch", .job = "solve.solve", .is_batch = true},
    {.name = "FactorizeAndSolve", .job = "factorize.factor"},
    {.name = "FactorizeAndSolveBatch", .job = "factorize.factor", .is_batch = true},
    {.name = "Direct", .job = "direct_solve.run"},
    {.name = "Schur", .job = "factorize.factor"},
    {.name = "Echelon", .job = "echelon.run"},
    {.name = "Series", .job = "series.step"},
    {.name = "GetFactors", .job = "scheduler.job", .has_payload = false},
    {.name = "ListFactors", .has_payload = false},
    {.name = "DescribeFactor", .has_payload = false},
    {.name = "RenewLease", .has_payload = false},
    {.name = "ReleaseFactor", .has_payload = false, .releases = true},
    {.name = "EstimateFactorize", .has_payload = false},
    {.name = "GetServerInfo", .has_payload = false},
}};
inline const CallTraits& TraitsOf(CallKind call) { return kCallTraits[static_cast<size_t>(call)]; }

// In the order in which a call passes them.
enum class PhaseKind {
  kAdmission,
  kAfterHeader,
  kMidUpload,
  kStagingFull,
  kAnalysis,
  kQueued,
  kRunning,
  kStoring,
  kReply,
};
inline constexpr int kPhaseKinds = 9;
inline constexpr std::array<const char*, kPhaseKinds> kPhaseNames = {
    "Admission", "AfterHeader", "MidUpload", "StagingFull", "Analysis",
    "Queued",    "Running",     "Storing",   "Reply"};

// Whether calls of this kind pass the phase. PhaseTest verifies it.
inline bool Passes(CallKind call, PhaseKind phase) {
  const CallTraits& traits = TraitsOf(call);
  switch (phase) {
    case PhaseKind::kAdmission:
    case PhaseKind::kQueued:
    case PhaseKind::kRunning:
      return !traits.job.empty();
    case PhaseKind::kAfterHeader:
    case PhaseKind::kMidUpload:
    case PhaseKind::kStagingFull:
      return traits.has_payload;
    case PhaseKind::kAnalysis:
      return !traits.analysis.empty();
    case PhaseKind::kStoring:
      return traits.stores;
    case PhaseKind::kReply:
      return true;
  }
  return false;
}

// Whether the server waits for bytes of the client in this phase.
inline bool AwaitsClient(PhaseKind phase) {
  return phase == PhaseKind::kAfterHeader || phase == PhaseKind::kMidUpload;
}

}  // namespace crout::testing

#endif  // CROUT_TESTS_SERVER_RPC_FAULTS_CALL_KIND_H_
