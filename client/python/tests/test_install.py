# SPDX-License-Identifier: Apache-2.0
"""Installation from a bundle: the package is beside the .proto files, in a read-only directory."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[1]


def _tree(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_read_only_bundle_can_be_installed(tmp_path):
    for module in ("setuptools", "wheel"):
        pytest.importorskip(module, reason="without the network, a wheel is made by what is there")
    bundle = tmp_path / "bundle"
    shutil.copytree(PACKAGE.parents[1] / "proto", bundle / "proto")
    (bundle / "python").mkdir()
    for name in ("README.md", "pyproject.toml", "setup.py"):
        shutil.copy(PACKAGE / name, bundle / "python")
    ignored = shutil.ignore_patterns("v1", "*.egg-info", "__pycache__")
    shutil.copytree(PACKAGE / "src", bundle / "python/src", ignore=ignored)
    before = _tree(bundle)
    for path in (bundle, *bundle.rglob("*")):
        path.chmod(path.stat().st_mode & ~0o222)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-build-isolation", "--no-deps"]
    try:
        subprocess.run([*pip, "--wheel-dir", tmp_path / "wheels", bundle / "python"], check=True, timeout=300)
    finally:
        for path in (bundle, *bundle.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)
    assert _tree(bundle) == before  # for runs as root, which can write read-only directories
    (wheel,) = (tmp_path / "wheels").glob("crout-*.whl")
    assert {"crout/client.py", "crout/py.typed", "crout/v1/matrix_pb2.py"} <= set(
        zipfile.ZipFile(wheel).namelist()
    )
