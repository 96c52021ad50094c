# SPDX-License-Identifier: Apache-2.0
"""The package crout_server, with scripts in place of the programs."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "server/crout_server/__init__.py"


@pytest.fixture
def site(tmp_path):
    programs = tmp_path / "crout_server/bin"
    programs.mkdir(parents=True)
    shutil.copy(SOURCE, programs.parent)
    for name in ("croutd", "croutctl"):
        (programs / name).write_text('#!/bin/sh\necho "${0##*/} $* $LD_LIBRARY_PATH"\n')
        (programs / name).chmod(0o700)
    return tmp_path


def output(site, program, *arguments, **environment):
    code = f"import crout_server; crout_server.{program}()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={"PYTHONPATH": str(site), **environment},
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_programs_get_the_arguments(site):
    assert output(site, "croutd", "--listen=x", "a b") == "croutd --listen=x a b \n"
    assert output(site, "croutctl", "list", LD_LIBRARY_PATH="/mine") == "croutctl list /mine\n"


def test_the_cuda_device_gets_the_libraries_of_its_version(site):
    for cuda in ("cu13", "cu14"):
        (site / "nvidia" / cuda / "lib").mkdir(parents=True)
    plugin = site / "crout_server/cu13/libcrout_cuda.so"
    plugin.parent.mkdir()
    plugin.touch()
    own = f"{plugin.parent}:{site}/nvidia/cu13/lib"
    assert output(site, "croutd") == f"croutd  {own}\n"
    assert output(site, "croutd", LD_LIBRARY_PATH="/mine:") == f"croutd  {own}:/mine\n"
