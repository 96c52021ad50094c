// SPDX-License-Identifier: Apache-2.0

#include "rank/open_mpi.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include "kernels/util/exec_arguments.h"
#include "rank/network.h"

namespace crout::rank {
namespace {

using Arguments = std::vector<std::string>;

// Machine names for mpirun. No host has such a name, so mpirun starts orted for each.
constexpr std::string_view kMachine = "crout";
// Containers often forbid process_vm_readv.
const Arguments kNoSingleCopy = {"--mca", "btl_vader_single_copy_mechanism", "none"};
constexpr char kVaderFolder[] = "btl_vader_backing_directory";

void Append(const Arguments& more, Arguments* arguments) {
  arguments->insert(arguments->end(), more.begin(), more.end());
}

// The system places the ranks, which may outnumber the cores and then yield them. mpirun's report
// of a rank that has ended would hide the rank's own message at the end of the output.
Arguments Mpirun(int ranks) {
  return {CROUT_MPIRUN,
          "-q",
          "-n",
          std::to_string(ranks),
          "--oversubscribe",
          "--bind-to",
          "none",
          "--mca",
          "pml",
          "ob1",
          "--mca",
          "mpi_yield_when_idle",
          "1"};
}

bool HasOnly(std::string_view text, std::string_view characters, size_t most) {
  return !text.empty() && text.size() <= most && std::ranges::all_of(text, [&](char c) {
    return (c >= '0' && c <= '9') || characters.find(c) != std::string_view::npos;
  });
}

}  // namespace

void ExecuteMpirun(int ranks, const std::string& program, const std::string& address) {
  // Folder of all files that MPI makes. The daemon removes it, because killed ranks do not.
  const char* const variable = std::getenv("TMPDIR");
  const std::string folder = variable != nullptr ? variable : "/tmp";
  Arguments arguments = Mpirun(ranks);
  Append(kNoSingleCopy, &arguments);
  // One machine: no remote start, no network but loopback, messages through shared memory.
  Append({"--mca", "plm", "isolated", "--mca", "oob_tcp_if_include", "lo", "--mca", "btl",
          "self,vader", "--mca", kVaderFolder, folder, "--mca", "orte_tmpdir_base", folder, program,
          "--join=" + address},
         &arguments);
  const std::vector<char*> pointers = Pointers(arguments);
  // mpirun accepts connections on all interfaces, from any host and without authentication.
  // RankProcesses::HasOwnNetwork() finds out whether this succeeded.
  LeaveNetwork();
  // mpirun refuses to run as root, as in most containers, without these.
  setenv("OMPI_ALLOW_RUN_AS_ROOT", "1", 1);
  setenv("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", 1);
  execvp(CROUT_MPIRUN, pointers.data());
}

std::vector<std::string> MpirunCommand(const v1::Form& form, const std::string& program,
                                       const std::string& network, const std::string& folder) {
  std::string machines;
  int ranks = 0;
  for (int i = 0; i < form.ranks_size(); ++i) {
    if (i > 0) machines += ",";
    machines += std::string(kMachine) + std::to_string(i) + ":" + std::to_string(form.ranks(i));
    ranks += form.ranks(i);
  }
  Arguments arguments = Mpirun(ranks);
  Append(kNoSingleCopy, &arguments);
  // The order of the ranks is the order of the machines. Every orted is started by this process.
  // Machines may lack the folder in which this process was started.
  Append({"--host",
          machines,
          "--map-by",
          "slot",
          "--wdir",
          "/",
          "--mca",
          "btl",
          "self,vader,tcp",
          "--mca",
          "plm",
          "rsh",
          "--mca",
          "plm_rsh_agent",
          program + " " + kRelayOption,
          "--mca",
          "plm_rsh_no_tree_spawn",
          "1",
          "--mca",
          "orte_tmpdir_base",
          folder},
         &arguments);
  if (!network.empty()) {
    Append({"--mca", "oob_tcp_if_include", network, "--mca", "btl_tcp_if_include", network},
           &arguments);
  }
  arguments.push_back(program);
  return arguments;
}

std::optional<v1::Launch> ReadRelayed(const std::vector<std::string>& arguments) {
  v1::Launch launch;
  // mpirun quotes values for a shell.
  const auto value_after = [&](std::string_view name) {
    const auto found = std::ranges::find(arguments, name);
    if (found == arguments.end() || found + 1 == arguments.end()) return std::string();
    std::string value = *(found + 1);
    std::erase(value, '"');
    return value;
  };
  launch.set_job(value_after("ess_base_jobid"));
  launch.set_process(value_after("ess_base_vpid"));
  launch.set_processes(value_after("ess_base_num_procs"));
  launch.set_nodes(value_after("orte_node_regex"));
  launch.set_uri(value_after("orte_hnp_uri"));
  if (arguments.empty() || !arguments.front().starts_with(kMachine)) return std::nullopt;
  const std::string_view machine = std::string_view(arguments.front()).substr(kMachine.size());
  int index = 0;
  const auto [end, error] = std::from_chars(machine.data(), machine.data() + machine.size(), index);
  if (error != std::errc() || end != machine.data() + machine.size()) return std::nullopt;
  launch.set_machine(index);
  if (!IsValid(launch)) return std::nullopt;
  return launch;
}

bool IsValid(const v1::Launch& launch) {
  constexpr std::string_view kNames =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ._-,:[]()@";
  constexpr size_t kMostDigits = 10;
  constexpr size_t kMostText = 4096;
  // The first character of a value must not make it an option of orted.
  return launch.machine() >= 0 && HasOnly(launch.job(), "", kMostDigits) &&
         HasOnly(launch.process(), "", kMostDigits) &&
         HasOnly(launch.processes(), "", kMostDigits) &&
         HasOnly(launch.nodes(), kNames, kMostText) && !launch.nodes().starts_with('-') &&
         HasOnly(launch.uri(), std::string(kNames) + ";/", kMostText) &&
         !launch.uri().starts_with('-');
}

std::vector<std::string> OrtedCommand(const v1::Launch& launch, const std::string& network,
                                      const std::string& folder) {
  const std::pair<const char*, std::string> parameters[] = {
      {"ess", "env"},
      {"ess_base_jobid", launch.job()},
      {"ess_base_vpid", launch.process()},
      {"ess_base_num_procs", launch.processes()},
      {"orte_node_regex", launch.nodes()},
      {"orte_hnp_uri", launch.uri()},
      {"plm", "rsh"},
      {"plm_rsh_no_tree_spawn", "1"},
      {"pmix", "^s1,s2,cray,isolated"},
      {"orte_tmpdir_base", folder}};
  Arguments arguments = {"orted"};
  for (const auto& [name, value] : parameters) Append({"-mca", name, value}, &arguments);
  if (!network.empty()) Append({"-mca", "oob_tcp_if_include", network}, &arguments);
  return arguments;
}

std::vector<std::string> RankVariables(const std::string& folder) {
  return {std::string("OMPI_MCA_") + kVaderFolder + "=" + folder};
}

}  // namespace crout::rank
