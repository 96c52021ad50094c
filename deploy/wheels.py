#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the Python wheels of Crout from an installed tree or a bundle:

    crout               the client, from client/python
    crout-server        croutd and croutctl with their libraries
    crout-server-cu13   the CUDA device, if the bundle has one, for CUDA 13; its libraries come from NVIDIA's wheels

usage: deploy/wheels.py BUNDLE.tar.gz|PREFIX DIRECTORY

Needs readelf, and Python 3.11 or newer with pip, setuptools, wheel and grpcio-tools (or protoc), whose version decides
which versions of protobuf the client accepts. docs/install.md describes how to publish the wheels.
"""

import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
CLIENT = ROOT / "client/python"
PROJECT = tomllib.loads((CLIENT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSION = PROJECT["version"]
PLUGIN = "libcrout_cuda.so"
DESCRIPTION = """{summary}.

Crout solves many linear systems on a GPU, or on the cores of the host. Install its Python client with this package:
`pip install 'crout[server]'`, or `pip install 'crout[cuda13]'` for GPUs. `crout.local()` then starts a private server,
and `crout-server` one for several programs.
"""
SCRIPTS = """[console_scripts]
crout-server = crout_server:croutd
croutctl = crout_server:croutctl
croutd = crout_server:croutd
"""


def readelf(option, files):
    return subprocess.run(["readelf", "--wide", option, *files], check=True, capture_output=True, text=True).stdout


def platform_tag(files):
    """Returns the tag of the oldest glibc that has all symbol versions that the files need."""
    versions = re.findall(r"Name: GLIBC_2\.(\d+)", readelf("--version-info", files))
    return f"manylinux_2_{max(map(int, versions))}_{platform.machine()}"


def cuda_version(plugin):
    """Returns the major version of CUDA that the plugin was built with."""
    return re.search(r"\[libcudart\.so\.(\d+)\]", readelf("--dynamic", [plugin])).group(1)


def pack(tree, name, summary, directory, requires=(), scripts="", licenses=None):
    """Adds the metadata to a tree that contains the package crout_server, and packs it as a wheel."""
    info = tree / f"{name.replace('-', '_')}-{VERSION}.dist-info"
    shutil.copytree(licenses, info / "licenses") if licenses else (info / "licenses").mkdir(parents=True)
    shutil.copy(ROOT / "LICENSE", info / "licenses")
    headers = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {VERSION}", f"Summary: {summary}",
               "License: Apache-2.0; bundled libraries have the licenses in the License-Files",
               f"Requires-Python: {PROJECT['requires-python']}", "Description-Content-Type: text/markdown"]
    headers += [f"License-File: {path.name}" for path in sorted((info / "licenses").iterdir())]
    headers += [f"Requires-Dist: {requirement}" for requirement in requires]
    (info / "METADATA").write_text("\n".join([*headers, "", DESCRIPTION.format(summary=summary)]), encoding="utf-8")
    tag = platform_tag([path for path in tree.rglob("*") if path.is_file() and path.open("rb").read(4) == b"\x7fELF"])
    (info / "WHEEL").write_text("Wheel-Version: 1.0\nGenerator: crout deploy/wheels.py\nRoot-Is-Purelib: false\n"
                                f"Tag: py3-none-{tag}\n", encoding="utf-8")
    if scripts:
        (info / "entry_points.txt").write_text(scripts, encoding="utf-8")
    subprocess.run([sys.executable, "-m", "wheel", "pack", tree, "--dest-dir", directory], check=True)


def pack_server(prefix, tree, directory):
    package = tree / "crout_server"
    shutil.copytree(CLIENT / "server/crout_server", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(prefix / "lib/crout", package / "lib/crout", ignore=shutil.ignore_patterns(PLUGIN))
    for program in ("bin/croutd", "bin/croutctl", "libexec/crout/crout-order"):
        (package / program).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(prefix / program, package / program)
    licenses = prefix / "share/doc/crout/licenses"
    recorded = (licenses / "libraries.txt").read_text(encoding="utf-8")
    for library in (package / "lib/crout").iterdir():
        if f"{library.name}: " not in recorded:
            sys.exit(f"{licenses}/libraries.txt does not name {library.name}: build the bundle on Debian")
    pack(tree, "crout-server", "croutd and croutctl, the server of Crout and its command line", directory,
         scripts=SCRIPTS, licenses=licenses)


def pack_cuda(plugin, tree, directory):
    cuda = cuda_version(plugin)
    (tree / f"crout_server/cu{cuda}").mkdir(parents=True)
    shutil.copy(plugin, tree / f"crout_server/cu{cuda}")
    pack(tree, f"crout-server-cu{cuda}", f"CUDA {cuda} device of crout-server", directory, requires=(
        f"crout-server=={VERSION}", f"cuda-toolkit[cublas,cudart,cusolver]=={cuda}.*", f"nvidia-cudss-cu{cuda}==1.*"))


def main(bundle, directory):
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", directory,
                    CLIENT], check=True)
    with tempfile.TemporaryDirectory() as work:
        work = pathlib.Path(work)
        prefix = bundle
        if bundle.is_file():
            with tarfile.open(bundle) as archive:
                archive.extractall(work / "bundle", filter="data")
            (prefix,) = (work / "bundle").iterdir()
        pack_server(prefix, work / "server", directory)
        plugin = prefix / "lib/crout" / PLUGIN
        if plugin.exists():
            pack_cuda(plugin, work / "cuda", directory)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(re.search(r"^usage: .*", __doc__, re.MULTILINE).group())
    main(*(pathlib.Path(argument).resolve() for argument in sys.argv[1:]))
