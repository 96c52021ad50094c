// SPDX-License-Identifier: Apache-2.0

#include "tests/bench/crout_bench/direct.h"

#include <memory>
#include <string>
#include <utility>

#include "kernels/algorithm_registry.h"
#include "kernels/util/status_macros.h"
#include "tests/bench/crout_bench/accuracy.h"
#include "tests/bench/crout_bench/families.h"
#include "tests/bench/crout_bench/subjects.h"
#include "tests/bench/crout_bench/timing.h"

namespace crout::bench {
namespace {

struct Peer {
  Json json;
  std::unique_ptr<Subject> subject;
};

Peer MakePeer(const Problem& problem, const Workbench& bench, int64_t nrhs, std::string_view name,
              absl::StatusOr<std::unique_ptr<Subject>> subject) {
  Peer peer;
  peer.json = {{"matrix", problem.name},
               {"source", problem.source},
               {"n", problem.n},
               {"nonzeros", problem.nonzeros},
               {"dtype", NameOf(bench.dtype())},
               {"algorithm", name},
               {"nrhs", nrhs}};
  if (subject.ok()) {
    peer.subject = *std::move(subject);
  } else {
    peer.json["error"] = subject.status().ToString();
  }
  return peer;
}

// Runs the solver once and adds the backward error of its solution.
absl::Status AddBackwardError(const std::vector<double>& a, const std::vector<double>& b,
                              const Problem& problem, int64_t nrhs, const RightHandSides& rhs,
                              Peer& peer) {
  CROUT_RETURN_IF_ERROR(peer.subject->Prepare());
  CROUT_RETURN_IF_ERROR(peer.subject->Run());
  CROUT_RETURN_IF_ERROR(peer.subject->Check());
  CROUT_ASSIGN_OR_RETURN(const std::vector<double> x, rhs.Solution());
  peer.json["backward_error"] = BackwardError(a, x, b, problem.n, nrhs, rhs.b().dtype);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Peer>> MakePeers(Workbench& bench, const Problem& problem, int64_t nrhs,
                                            RightHandSides& rhs) {
  const Device& device = bench.context().device();
  CROUT_ASSIGN_OR_RETURN(const LuAlgorithm* getrf,
                         FindAlgorithm(device, "getrf", bench.dtype(), problem.n));
  CROUT_ASSIGN_OR_RETURN(
      const TriangularSolver* getrs,
      FindSolver(device, "getrs", UnitDiagonal::kL, bench.dtype(), problem.n, nrhs));
  std::vector<Peer> peers;
  peers.push_back(MakePeer(problem, bench, nrhs, "getrf+getrs",
                           MakeFactorAndSolveSubject(bench, rhs, *getrf, *getrs)));
  for (const auto& solver : device.direct_solvers()) {
    if (!solver->traits().types.contains(bench.dtype())) continue;
    peers.push_back(
        MakePeer(problem, bench, nrhs, solver->name(), MakeDirectSubject(bench, rhs, *solver)));
  }
  return peers;
}

absl::Status RunWith(Workbench& bench, const Problem& problem, const Options& options, int64_t nrhs,
                     Json& cases) {
  const std::vector<double> a = RoundedTo(bench.dtype(), problem.values);
  CROUT_ASSIGN_OR_RETURN(std::vector<double> b, Generate("random", problem.n, problem.complex));
  b.resize(b.size() / problem.n * nrhs);
  b = RoundedTo(bench.dtype(), std::move(b));
  CROUT_ASSIGN_OR_RETURN(RightHandSides rhs, RightHandSides::Create(bench, nrhs, b));
  CROUT_ASSIGN_OR_RETURN(std::vector<Peer> peers, MakePeers(bench, problem, nrhs, rhs));
  std::vector<Subject*> subjects;
  std::vector<Json*> jsons;
  for (Peer& peer : peers) {
    if (peer.subject == nullptr) continue;
    const absl::Status status = AddBackwardError(a, b, problem, nrhs, rhs, peer);
    if (!status.ok()) {
      peer.json["error"] = status.ToString();
      continue;
    }
    subjects.push_back(peer.subject.get());
    jsons.push_back(&peer.json);
  }
  const std::vector<Timing> timings =
      TimeInTurns(subjects, options.repetitions, options.case_seconds);
  for (size_t i = 0; i < timings.size(); ++i) AddTiming(timings[i], *jsons[i]);
  for (Peer& peer : peers) cases.push_back(std::move(peer.json));
  return absl::OkStatus();
}

}  // namespace

absl::Status RunDirect(Workbench& bench, const Problem& problem, const Options& options,
                       Json& cases) {
  if (bench.context().device().direct_solvers().empty()) return absl::OkStatus();
  CROUT_RETURN_IF_ERROR(RunWith(bench, problem, options, 1, cases));
  return problem.n == 1 ? absl::OkStatus() : RunWith(bench, problem, options, problem.n, cases);
}

}  // namespace crout::bench
