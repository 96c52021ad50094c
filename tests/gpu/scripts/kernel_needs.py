#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a table of the resources of every kernel on each architecture of a build.

  cmake -S . -B BUILD -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCROUT_CUDA_ARCHITECTURES=80;86;90;100"
  ninja -C BUILD crout_cuda_device kernel_needs     # takes minutes: not part of every CI run
  tests/gpu/scripts/kernel_needs.py BUILD [--cuobjdump PATH] > docs/kernel-needs.md

cuobjdump reads registers and static shared memory from the machine code. The program kernel_needs
prints the dynamic shared memory of the launches. Exit status: 1 if a kernel does not fit an
architecture.
"""
import argparse
import pathlib
import re
import subprocess
import sys

# Maximum shared memory of a block of threads, by compute capability (technical specifications in the
# CUDA C++ programming guide).
SHARED_BYTES = {75: 64 << 10, 80: 163 << 10, 86: 99 << 10, 89: 99 << 10, 90: 227 << 10,
                100: 227 << 10, 103: 227 << 10, 120: 99 << 10}
# Additional shared memory of every block for the system. Resource reports include it from 9.0 on.
RESERVED_BYTES = 1024
CLUSTERS_FROM = 90  # first compute capability with clusters


def output(*command, text=None):
  return subprocess.run(command, input=text, check=True, capture_output=True, text=True).stdout


def short_names(mangled):
  """Returns {symbol: kernel name}; names have template arguments, but no scopes and parameters."""
  names = {}
  for symbol, name in zip(mangled, output("c++filt", text="\n".join(mangled)).splitlines()):
    for scope in ("(anonymous namespace)::", "crout::cuda::"):
      name = name.replace(scope, "")
    found = re.search(r"(\w+Kernel)(<[^()]*>)?\(", re.sub(r"> (?=>)", ">", name))
    names[symbol] = (found.group(1) + re.sub(r"\((int|bool)\)", "", found.group(2) or "")
                     if found else None)
  return names


def resources(cuobjdump, objects):
  """Returns {architecture: {(source, kernel): (registers, static bytes, bytes of stack)}}."""
  found = {}
  for path in objects:
    architecture = symbol = None
    in_code = False
    for line in output(cuobjdump, "-res-usage", str(path)).splitlines():
      if line.startswith("Fatbin"):
        in_code = "elf" in line
      elif match := re.match(r"arch = sm_(\d+)", line):
        architecture = int(match.group(1))
      elif match := re.match(r" Function (\w+):", line):
        symbol = match.group(1)
      elif in_code and symbol and (match := re.search(
          r"REG:(\d+) STACK:(\d+) SHARED:(\d+)", line)):
        registers, stack, shared = map(int, match.groups())
        counted = RESERVED_BYTES if architecture >= 90 else 0
        found.setdefault(architecture, {})[path.stem.split(".")[0], symbol] = (
            registers, max(0, shared - counted), stack)
        symbol = None
  names = short_names(sorted({key[1] for kernels in found.values() for key in kernels}))
  return {architecture: {(source, names[symbol]): need for (source, symbol), need in kernels.items()
                         if names[symbol]}
          for architecture, kernels in found.items()}


def dynamic_bytes(program, architecture):
  lines = output(program, str(SHARED_BYTES[architecture])).splitlines()
  return {name: int(count) for name, count in (line.split("\t") for line in lines)}


def max_cluster(name):
  """Returns the cluster size of variants in lu_panel_variants.h and pcm_panel.h; 0 for others."""
  if not name.startswith(("PcmPanelClusterKernel", "LuPanelKernel")) or name.endswith("false>"):
    return 0
  return 8 if re.match(r"LuPanelKernel<\w+, 32, 1, 128, true>", name) else 16


def is_after_clusters(name):
  """Returns whether the kernel is launched only on GPUs with clusters."""
  return name.startswith(("PcmPanelClusterKernel", "LuPanelKernel", "BlockRowKernel"))


class Family:
  """The number of instances of a kernel template, and their largest needs on each architecture."""

  def __init__(self):
    self.instances = 0
    self.cluster = 0
    self.needs = {}  # {architecture: (registers, static bytes, dynamic bytes, bytes of stack)}

  def add(self, architecture, need):
    self.needs[architecture] = tuple(map(max, need, self.needs.get(architecture, need)))

  def row(self, source, name, architectures):
    cells = []
    for architecture in architectures:
      if architecture not in self.needs:
        cells.append("-")
        continue
      registers, static, more, stack = self.needs[architecture]
      cells.append(f"{registers} / {static}" + (f" + {more}" if more else "") +
                   (f" [{stack}]" if stack else ""))
    return (f"| {source} | `{name}` | {self.instances} | {self.cluster or ''} | " +
            " | ".join(cells) + " |")


def main():
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument("build", type=pathlib.Path)
  parser.add_argument("--cuobjdump", default="cuobjdump")
  parser.add_argument("--revision", default="HEAD", help="what was built")
  arguments = parser.parse_args()
  objects = sorted(arguments.build.glob("kernels/cuda/CMakeFiles/crout_cuda_device.dir/**/*.cu.o"))
  if not objects:
    sys.exit(f"{arguments.build}: no objects of crout_cuda_device; see --help")
  found = resources(arguments.cuobjdump, objects)
  architectures = sorted(found)
  program = next(arguments.build.glob("tests/gpu/kernel_needs"))
  dynamic = {architecture: dynamic_bytes(program, architecture) for architecture in architectures}
  commit = output("git", "-C", str(pathlib.Path(__file__).parent), "log", "-1", "--format=%h %cs",
                  arguments.revision)

  print("# Kernel resources\n")
  print("For developers of CUDA kernels: the registers, stack and shared memory of every kernel on each "
        "architecture.\n")
  print("For example, `80 / 0 + 53280 [32]` means 80 registers a thread, no static and at most 53280 "
        "bytes of dynamic shared memory a thread block, and 32 bytes of stack. Each number is the largest "
        "of the template's instances, so the numbers of a cell may belong to different instances.\n")
  print("- Instances: number of instantiations of the template.")
  print("- Cluster: largest number of blocks that a launch tries, from compute capability 9.0 on. The launch "
        "uses fewer if the GPU has no room for them.")
  print("- `-`: no instance is launched on this architecture.")
  print("- Largest shared memory of a thread block: " + ", ".join(
      f"{SHARED_BYTES[a]} bytes on sm_{a}" for a in architectures) + ".\n")
  print("`tests/gpu/scripts/kernel_needs.py` generates this page from the machine code of commit "
        f"{commit.split()[0]} ({commit.split()[1]}). `DeviceLimits` gives the sizes that launches request.\n")
  print("| source | kernel | instances | cluster | " + " | ".join(f"sm_{a}" for a in architectures) + " |")
  print("| --- | --- | --- | --- |" + " --- |" * len(architectures))
  failed = []
  families = {}
  for source, name in sorted(set().union(*found.values())):
    family = families.setdefault((source, name.partition("<")[0]), Family())
    family.instances += 1
    family.cluster = max(family.cluster, max_cluster(name))
    for architecture in architectures:
      need = found[architecture].get((source, name))
      known = any(name in by_name for by_name in dynamic.values())
      if (need is None or (is_after_clusters(name) and architecture < CLUSTERS_FROM) or
          (known and name not in dynamic[architecture])):
        continue
      registers, static, stack = need
      more = dynamic[architecture].get(name, 0)
      if static + more > SHARED_BYTES[architecture]:
        failed.append(f"{name} on sm_{architecture}")
      family.add(architecture, (registers, static, more, stack))
  for (source, name), family in families.items():
    print(family.row(source, name, architectures))
  print("\nKernels that do not fit: " + (", ".join(failed) if failed else "none") + ".")
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
