#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks docs/architecture.md and docs/internals.md against the tree. All paths, symbols and decisions in them must
exist. docs/architecture.md must be short and contain every folder of the product.

usage: architecture_test.py
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MAP = ROOT / "docs/architecture.md"
INTERNALS = ROOT / "docs/internals.md"
MAX_LINES = 150
DEVICES = ("kernels/host", "kernels/cuda")
# Folders of code. Build trees and files of tools are in other folders.
CODE = ("client", "cmake", "deploy", "docs", "kernels", "proto", "server", "tests")
EXTENSIONS = r"\.(cc|cmake|cu|cuh|h|map|md|proto|py|sh)"


def spans(text):
    """Returns the texts between backquotes."""
    return re.findall(r"`([^`\n]+)`", text)


def is_path(span):
    return bool(re.fullmatch(rf"[\w./*-]*/[\w./*-]*|[\w*-]+{EXTENSIONS}", span))


def code_files(*folders):
    for folder in folders:
        yield from (path for path in (ROOT / folder).rglob("*") if path.is_file())


class ArchitectureTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.map = MAP.read_text(encoding="utf-8")
        cls.text = cls.map + INTERNALS.read_text(encoding="utf-8")
        cls.names = {path.name for path in code_files(*CODE)}

    def missing_paths(self, line):
        """Yields the paths in a line that do not exist.

        A path with folders is relative to the root. A name without folders is a file below one of the folders in the
        line, or beside the files of a pattern in the line. In a line without folders and patterns, it is any file.
        """
        paths = [span for span in spans(line) if is_path(span)]
        below = [path.rstrip("/") for path in paths if (ROOT / path).is_dir()]
        beside = [path.rpartition("/")[0] for path in paths if "*" in path and "/" in path]
        places = [f"{folder}/**" for folder in below] + beside
        for path in paths:
            if any(ROOT.glob(path)):
                continue
            if any(found for place in places for found in ROOT.glob(f"{place}/{path}")):
                continue
            if places or "/" in path or path not in self.names:
                yield path

    def test_the_map_is_short(self):
        self.assertLessEqual(len(self.map.splitlines()), MAX_LINES)

    def test_paths_are_there(self):
        for line in self.text.splitlines():
            self.assertEqual([], list(self.missing_paths(line)), line)

    def test_symbols_are_in_the_code(self):
        words = set()
        for path in code_files("client", "kernels", "proto", "server"):
            if path.suffix in (".h", ".cc", ".cuh", ".proto"):
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        for span in spans(self.text):
            symbol = re.fullmatch(r"((?:\w+::)*[A-Z]\w+)(<\w+>)?(\(\))?", span)
            if symbol:
                self.assertEqual(set(), set(symbol.group(1).split("::")) - words, span)

    def test_decisions_are_there(self):
        for number in re.findall(r"decision (\d{4})", self.text):
            self.assertTrue(any((ROOT / "docs/decisions").glob(f"{number}-*.md")), number)

    def test_folders_of_devices_are_there(self):
        for row in re.findall(r"^\| \.\.\. ([^|]*)\|", self.map, re.MULTILINE):
            for folder in spans(row):
                self.assertTrue(any((ROOT / device / folder).is_dir() for device in DEVICES), folder)

    def test_every_folder_of_the_product_is_named(self):
        named = {span.rstrip("/") for span in spans(self.map)}
        for part in ("kernels", "server", "client"):
            for folder in (path for path in (ROOT / part).iterdir() if path.is_dir()):
                self.assertTrue(f"{part}/{folder.name}" in named, folder)
        for device in DEVICES:
            for folder in (path for path in (ROOT / device).iterdir() if path.is_dir()):
                self.assertTrue({folder.name, f"{device}/{folder.name}"} & named, folder)


if __name__ == "__main__":
    unittest.main()
