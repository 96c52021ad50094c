// SPDX-License-Identifier: Apache-2.0

#include "client/cli/help/command_examples.h"

namespace crout::cli {
namespace {

struct CommandExamples {
  absl::string_view command;
  const char* examples[2];
};

// The first ones create the factors and files that later ones use.
constexpr CommandExamples kExamples[] = {
    {"",
     {"croutctl factor convection_diffusion.mtx --name=demo",
      "croutctl solve demo --ones -o x.mtx"}},
    {"factor",
     {"croutctl factor convection_diffusion.mtx --name=demo --condition",
      "croutctl factor convection_diffusion.mtx --algorithm=icmpp --name=step"}},
    {"refactor",
     {"croutctl refactor demo convection_diffusion.mtx",
      "croutctl refactor step convection_diffusion.mtx --algorithm=icmpp"}},
    {"solve",
     {"croutctl solve demo --ones -o b.mtx",
      "croutctl solve demo b.mtx --refine=2 --error-bound -o x.mtx"}},
    {"lu",
     {"croutctl lu convection_diffusion.mtx b.mtx -o x.mtx",
      "croutctl lu convection_diffusion.mtx --ones --keep --name=demo"}},
    {"factor-batch",
     {"croutctl factor-batch convection_diffusion.mtx convection_diffusion.mtx --name=pair",
      "croutctl factor-batch convection_diffusion.mtx --dtype=f32"}},
    {"solve-batch",
     {"croutctl solve-batch pair --ones -o x", "croutctl solve-batch pair b.mtx --members=1"}},
    {"schur",
     {"croutctl schur convection_diffusion.mtx --leading=128 -o s.npy",
      "croutctl schur convection_diffusion.mtx --leading=64 --name=block"}},
    {"rref",
     {"croutctl rref convection_diffusion.mtx -o r.npy",
      "croutctl rref convection_diffusion.mtx --augmented=1 --tolerance=1e-10"}},
    {"series",
     {"croutctl series convection_diffusion.mtx convection_diffusion.mtx --ones",
      "croutctl series convection_diffusion.mtx --rhs=b.mtx --strategy=reuse -o solutions"}},
    {"get", {"croutctl get demo -o demo", "croutctl get pair --member=0 -o pair --format=npy"}},
    {"list", {"croutctl list", "croutctl list --name=demo --json"}},
    {"info", {"croutctl info demo", "croutctl info demo --json"}},
    {"iterations", {"croutctl iterations step", "croutctl iterations step --json"}},
    {"renew", {"croutctl renew demo --lease=2h", "croutctl renew demo pair"}},
    {"release", {"croutctl release demo", "croutctl release pair step"}},
    {"verify",
     {"croutctl verify convection_diffusion.mtx x.mtx b.mtx",
      "croutctl verify convection_diffusion.mtx x.mtx b.mtx --json"}},
    {"analyze",
     {"croutctl analyze convection_diffusion.mtx",
      "croutctl analyze convection_diffusion.mtx --ordering=natural --depth=0"}},
    {"algorithms", {"croutctl algorithms", "croutctl algorithms --json"}},
    {"devices", {"croutctl devices", "croutctl devices --json"}},
    {"status", {"croutctl status", "croutctl status --timeout=1s --json"}},
    {"estimate", {"croutctl estimate 4096 --dtype=f32", "croutctl estimate 10000 --nnz=50000"}},
    {"top", {"croutctl top --once", "croutctl top --interval=5s"}},
    {"bench",
     {"croutctl bench --n=64 --requests=200 --concurrency=1,2",
      "croutctl bench --n=64 --mode=mixed --rate=50 --duration=2s"}},
    {"completion", {". <(croutctl completion bash)", "croutctl completion zsh -o _croutctl"}},
    {"man", {"croutctl man | man -l -", "croutctl man factor | man -l -"}},
    {"version", {"croutctl version", "croutctl version --json"}},
};

}  // namespace

std::vector<std::string> ExamplesOf(absl::string_view command) {
  for (const auto& [name, examples] : kExamples) {
    if (name == command) return {examples[0], examples[1]};
  }
  return {};
}

}  // namespace crout::cli
