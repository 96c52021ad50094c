#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the site of docs/ with mkdocs. The build must have no warnings, every link within the site must lead to a page
and an anchor of the site, and the navigation must have every page.

usage: site_test.py [MKDOCS]    MKDOCS is the program, by default `mkdocs` in PATH
"""

import html.parser
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import urllib.parse

ROOT = pathlib.Path(__file__).resolve().parents[2]
MKDOCS = sys.argv.pop(1) if len(sys.argv) > 1 else "mkdocs"


class Page(html.parser.HTMLParser):
    """The anchors of a page and the targets of its links."""

    def __init__(self, path):
        super().__init__()
        self.anchors = set()
        self.links = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.anchors |= {attributes[name] for name in ("id", "name") if attributes.get(name)}
        for name in ("href", "src"):
            if attributes.get(name):
                self.links.add(attributes[name])


class SiteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.site = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        cls.build = subprocess.run([MKDOCS, "build", "--strict", "--site-dir", cls.site], cwd=ROOT,
                                   text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        cls.pages = {path: Page(path) for path in cls.site.rglob("*.html") if path.name != "404.html"}

    def test_builds_without_warnings(self):
        self.assertEqual(self.build.returncode, 0, self.build.stdout)
        self.assertNotIn("WARNING", self.build.stdout)

    def test_every_page_is_in_the_navigation(self):
        self.assertNotIn("not included in the", self.build.stdout)

    def test_links(self):
        missing = []
        for path, page in self.pages.items():
            for link in page.links:
                if re.match("[a-z]+:|//", link):
                    continue
                name, _, anchor = link.partition("#")
                target = (path.parent / urllib.parse.unquote(name)).resolve() if name else path
                found = target.exists() and (
                    not anchor or target not in self.pages or urllib.parse.unquote(anchor) in self.pages[target].anchors)
                if not found:
                    missing.append(f"{path.relative_to(self.site)}: {link}")
        self.assertEqual([], sorted(missing))


if __name__ == "__main__":
    unittest.main()
