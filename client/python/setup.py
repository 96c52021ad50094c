# SPDX-License-Identifier: Apache-2.0
"""Generates the protocol messages while the package is built. pyproject.toml has all other settings."""

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.sdist import sdist

HERE = Path(__file__).resolve().parent
# The .proto files in a source archive, in an installed bundle and in the repository.
PROTO_DIRECTORIES = (HERE / "proto", HERE.parent / "proto", HERE.parents[1] / "proto")
PROTOS = ("matrix", "factor", "factorization_service")


def proto_directory():
    for directory in PROTO_DIRECTORIES:
        if (directory / "crout/v1/factorization_service.proto").exists():
            return directory
    sys.exit("the wire contract, proto/crout/v1, is neither in nor beside this directory")


def protoc():
    """Return the command of grpcio-tools' compiler; without grpcio-tools, the system's."""
    try:
        import grpc_tools  # noqa: F401
    except ImportError:
        program = shutil.which("protoc")
        if program is None:
            sys.exit("neither grpcio-tools nor protoc is here: install one of them")
        return [program]
    from importlib.resources import files

    return [sys.executable, "-m", "grpc_tools.protoc", f"-I{files('grpc_tools') / '_proto'}"]


def generate(root):
    """Write the messages and their type stubs to ROOT/crout/v1."""
    subprocess.run(
        [*protoc(), f"-I{proto_directory()}", f"--python_out={root}", f"--pyi_out={root}"]
        + [f"crout/v1/{name}.proto" for name in PROTOS],
        check=True,
    )
    package = Path(root) / "crout/v1"
    (package / "__init__.py").write_text('"""Messages of the wire contract, generated."""\n')


def protobuf_requirement():
    """Return the protobuf versions that the generated code supports: its major version and the next."""
    with tempfile.TemporaryDirectory() as root:
        generate(root)
        source = (Path(root) / "crout/v1/matrix_pb2.py").read_text()
    version = re.search(r"^# Protobuf Python Version: (\d+)\.(\d+\.\d+)", source, re.MULTILINE)
    if version is None:  # a protoc before 26 generated the code, which supports 3.20 to 5
        return "protobuf>=3.20,<6"
    return f"protobuf>={version[1]}.{version[2]},<{int(version[1]) + 2}"


class BuildWithMessages(build_py):
    def run(self):
        super().run()
        generate(HERE / "src" if getattr(self, "editable_mode", False) else self.build_lib)


class ArchiveWithContract(sdist):
    def make_release_tree(self, base_dir, files):
        super().make_release_tree(base_dir, files)
        for name in PROTOS:
            target = Path(base_dir) / "proto/crout/v1" / f"{name}.proto"
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(proto_directory() / "crout/v1" / f"{name}.proto", target)


# A temporary directory: a bundle may be read-only, and a source tree must stay clean.
WORK = tempfile.TemporaryDirectory()

setup(
    options={"build": {"build_base": WORK.name}, "egg_info": {"egg_base": WORK.name}},
    cmdclass={"build_py": BuildWithMessages, "sdist": ArchiveWithContract},
    install_requires=[
        "grpcio>=1.51",
        "numpy>=1.22",
        protobuf_requirement(),
        "tomli>=1.1; python_version < '3.11'",
    ],
)
