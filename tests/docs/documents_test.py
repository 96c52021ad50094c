#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the files, headings, paths, kept results and decision records in documents exist.

usage: documents_test.py
"""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOLDERS = ("client", "deploy", "docs", "tests")
PARTS = "client|cmake|deploy|docs|kernels|proto|server|tests"


def documents():
    yield from ROOT.glob("*.md")
    for folder in FOLDERS:
        yield from (ROOT / folder).rglob("*.md")


def anchors(text):
    """Returns the anchors of a document: explicit anchors, and anchors of headings in GitHub's format."""
    found = set(re.findall(r'<a id="([^"]+)"', text))
    times = {}
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        count = times[name] = times.get(name, -1) + 1
        found.add(f"{name}-{count}" if count else name)
    return found


class DocumentsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.texts = {path: path.read_text(encoding="utf-8") for path in documents()}

    def check(self, pattern, is_there):
        missing = [f"{path.relative_to(ROOT)}: {name}" for path, text in self.texts.items()
                   for name in sorted(set(re.findall(pattern, text))) if not is_there(path, name)]
        self.assertEqual([], missing)

    def leads_somewhere(self, path, link):
        if re.match("[a-z]+:", link):
            return True
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        return target.exists() and (not anchor or target not in self.texts or anchor in anchors(self.texts[target]))

    def test_links(self):
        self.check(r"\]\(([^)\s]+)\)", self.leads_somewhere)

    def test_paths(self):
        self.check(rf"`((?:{PARTS})/[\w./*-]+)`", lambda path, name: any(ROOT.glob(name)))

    def test_results(self):
        results = ROOT / "tests/bench/results"
        self.check(r"\b[\w.-]+_20\d\d-\d\d-\d\d\.json\b", lambda path, name: (results / name).exists())

    def test_decisions(self):
        self.check(r"[Dd]ecisions? ((?:\d{4}(?:, | and )?)+)", lambda path, names: all(
            any((ROOT / "docs/decisions").glob(f"{number}-*.md")) for number in re.findall(r"\d{4}", names)))

    def test_form_of_decisions(self):
        folder = ROOT / "docs/decisions"
        index = self.texts[folder / "README.md"]
        names = sorted(path.name for path in folder.glob("[0-9]*.md"))
        self.assertEqual([f"{number:04}" for number in range(1, len(names) + 1)], [name[:4] for name in names])
        for name in names:
            with self.subTest(name=name):
                text = self.texts[folder / name]
                self.assertIn(f"]({name})", index)
                self.assertRegex(text, rf"\A# {name[:4]}: .+\n\nStatus: (Accepted|Proposed|Superseded by \d{{4}}|Withdrawn)")
                if "Status: Withdrawn" not in text:
                    sections = re.findall(r"^## (.*)$", text, re.M)
                    self.assertEqual(["Context", "Decision", "Consequences", "Alternatives"], sections)


if __name__ == "__main__":
    unittest.main()
