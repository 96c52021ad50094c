# SPDX-License-Identifier: Apache-2.0
"""The examples run without warnings, and the documents show their output."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
REPOSITORY = PACKAGE.parents[1]


def _run(*arguments, warnings="error", **env):
    command = [sys.executable, "-W", warnings, *arguments]
    environment = os.environ | env
    return subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=300, env=environment
    ).stdout


@pytest.mark.parametrize(
    ("page", "example"),
    [
        ("docs/python.md", "first_steps.py"),
        ("docs/python.md", "power_grid.py"),
        ("docs/scipy.md", "from_scipy.py"),
    ],
)
def test_pages_show_the_output_of_examples(address, page, example):
    output = _run(PACKAGE / "examples" / example, CROUT_SERVER=address)
    shown = f"$ env/bin/python crout/share/crout/python/examples/{example}\n{output}```\n"
    assert shown in (REPOSITORY / page).read_text(), shown


def test_the_readme_shows_the_output_of_the_quick_start(croutd):
    output = _run(PACKAGE / "examples/quick_start.py", PATH=f"{croutd.parent}:{os.environ['PATH']}")
    assert f"$ env/bin/python quick_start.py\n{output}```\n" in (REPOSITORY / "README.md").read_text()


def test_bddc_takes_the_published_iterations(address):
    output = _run(PACKAGE / "examples/bddc.py", address, "5")
    assert "64 local matrices of orders 104 to 178" in output
    assert "\n5 iterations, relative residual 9.45e-08\n" in output  # see tests/bench/published/bddc.csv
    # The exact value at the center, from the series of the solution, is 0.0562; h = 1/20.
    assert "u in the middle 0.0564\n" in output


def test_the_notebook_shows_its_output(address):
    notebook = PACKAGE / "examples/three_systems.ipynb"
    # Debian's matplotlib gets warnings from pyparsing.
    _run(PACKAGE / "tests/notebook.py", notebook, warnings="default", CROUT_SERVER=address)


@pytest.mark.parametrize("block", range(4))
def test_the_packages_readme(address, croutd, tmp_path, block):
    code = (PACKAGE / "README.md").read_text().split("```python\n")[1 + block].split("```")[0]
    script = tmp_path / "snippet.py"
    script.write_text(
        f"import numpy\nA, b = 4 * numpy.eye(4), numpy.ones(4)\n{code.replace('localhost:50051', address)}"
    )
    _run(script, PATH=f"{croutd.parent}:{os.environ['PATH']}")
