# SPDX-License-Identifier: Apache-2.0
"""Crout's server: the programs croutd and croutctl, with the libraries that they need.

deploy/wheels.py adds the programs in bin/, lib/ and libexec/. The distribution crout-server-cu13 adds the
CUDA device in cu13/, which needs the libraries of NVIDIA's packages in nvidia/cu13/lib.
"""

import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

_PACKAGE = Path(__file__).parent


def program(name: str) -> Path:
    """Return the path of "croutd" or "croutctl"."""
    return _PACKAGE / "bin" / name


def environment() -> dict[str, str]:
    """Return the environment for croutd: this process's, with the directories of the CUDA libraries."""
    directories = []
    for plugin in _PACKAGE.glob("cu*/libcrout_cuda.so"):
        directories.append(str(plugin.parent))
        nvidia = importlib.util.find_spec("nvidia")
        if nvidia is not None:
            directories += [
                f"{root}/{plugin.parent.name}/lib" for root in nvidia.submodule_search_locations or ()
            ]
    searched = [*directories, *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(":"))]
    return {**os.environ, "LD_LIBRARY_PATH": ":".join(searched)} if directories else dict(os.environ)


def croutd() -> NoReturn:
    """Replace this process by croutd."""
    _run("croutd")


def croutctl() -> NoReturn:
    """Replace this process by croutctl."""
    _run("croutctl")


def _run(name: str) -> NoReturn:
    os.execve(program(name), [name, *sys.argv[1:]], environment())
