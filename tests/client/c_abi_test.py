#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that libcrout's ABI only grows: compares the library with client/c/libcrout.abi by libabigail.

usage: c_abi_test.py LIBCROUT [--write]
    --write   replaces client/c/libcrout.abi, after an addition or after the soname has changed

Fields may be appended to structures that begin with their size.

LIBCROUT needs debug information, as in the preset `ci`.
"""

import pathlib
import subprocess
import sys
import tempfile

C = pathlib.Path(__file__).resolve().parents[2] / "client" / "c"
ABI = C / "libcrout.abi"


def describe(library):
    """Returns libabigail's description of the functions and types of crout.h in `library`."""
    options = "--no-elf-needed --no-parameter-names --no-corpus-path --no-comp-dir-path --no-show-locs"
    options += " --drop-private-types --exported-interfaces-only"
    command = ["abidw", *options.split(), "--headers-dir", C / "crout", library]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.replace(f"{C.parents[1]}/", "")


def compare(old, new):
    """Returns what `new` lacks or has changed; empty if nothing."""
    result = subprocess.run(["abidiff", "--no-added-syms", old, new], capture_output=True, text=True)
    return result.stdout + result.stderr if result.returncode else ""


def main(library):
    described = describe(library)
    assert "name='crout_options' size-in-bits" in described, f"{library} has no debug information"
    if "--write" in sys.argv:
        ABI.write_text(described)
    with tempfile.TemporaryDirectory() as folder:
        new, moved = (pathlib.Path(folder) / name for name in ("new.abi", "moved.abi"))
        new.write_text(described)
        moved.write_text(described.replace("layout-offset-in-bits='64'", "layout-offset-in-bits='32'", 1))
        assert compare(new, moved), "abidiff must find a moved member"
        changes = compare(ABI, new)
    if changes:
        sys.exit(f"{changes}\nlibcrout's ABI has changed. Restore it, or raise the major version. Then use --write.")


if __name__ == "__main__":
    main(sys.argv[1])
