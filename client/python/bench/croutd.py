# SPDX-License-Identifier: Apache-2.0
"""The servers of the tests, for benchmarks that start one."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from daemon import Server

__all__ = ["Server"]
