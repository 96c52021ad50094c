"""The examples run, and the README shows their output."""

import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLE = PACKAGE / "examples/first_steps.py"
README = PACKAGE.parents[1] / "README.md"


def _run(*arguments):
    command = [sys.executable, "-W", "error", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout


def test_the_readme_shows_the_example_and_its_output(address):
    output = _run(EXAMPLE, address)
    readme = README.read_text()
    section = readme[readme.index("\n## Python\n") :]
    _, code, _, shown = section.split("```", 4)[:4]
    first_cell = EXAMPLE.read_text().index("# %%")
    assert code.removeprefix("python\n") == EXAMPLE.read_text()[first_cell:]
    assert shown.lstrip("\n") == "$ python client/python/examples/first_steps.py\n" + output


def test_the_readme_shows_the_power_grid(address):
    output = _run(PACKAGE / "examples/power_grid.py", address)
    shown = "```\n$ python client/python/examples/power_grid.py\n" + output + "```\n"
    assert shown in README.read_text(), shown


def test_bddc_takes_the_published_iterations(address):
    output = _run(PACKAGE / "examples/bddc.py", address, "5")
    assert "64 local matrices of orders 104 to 178" in output
    assert "\n5 iterations, relative residual 9.45e-08\n" in output  # As in tests/bench/published/bddc.csv.
    # The series of the exact solution gives 0.0562 there; h = 1/20.
    assert "u in the middle 0.0564\n" in output


@pytest.mark.parametrize("block", range(3))
def test_the_packages_readme(address, tmp_path, block):
    code = (PACKAGE / "README.md").read_text().split("```python\n")[1 + block].split("```")[0]
    script = tmp_path / "snippet.py"
    script.write_text(
        f"import numpy\nA, b = 4 * numpy.eye(4), numpy.ones(4)\n{code.replace('localhost:50051', address)}"
    )
    _run(script)
