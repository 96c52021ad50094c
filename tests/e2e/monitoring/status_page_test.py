#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Parses the status page of a real daemon as strict XML while calls begin, run and end.

usage: status_page_test.py CROUTD CROUTCTL
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request
import xml.etree.ElementTree

TIMEOUT = 60  # seconds
NAME = "name-of-a-factor"
TENANT = "some-tenant"
ORDER = 40
CROUTD = CROUTCTL = None


def matrix():
    """Returns the text of a diagonally dominant matrix."""
    values = [f"{ORDER if i == j else 1}\n" for j in range(ORDER) for i in range(ORDER)]
    return f"%%MatrixMarket matrix array real general\n{ORDER} {ORDER}\n" + "".join(values)


def rows(page, title):
    """Returns the rows of the table below a heading, as texts of the cells, without the header row."""
    for section in page.iter("section"):
        heading = section.find("h2")
        if heading is not None and heading.text == title:
            return [["".join(cell.itertext()).strip() for cell in row.findall("td")]
                    for row in section.iter("tr") if row.find("td") is not None]
    raise AssertionError(f"no section {title}")


class StatusPageTest(unittest.TestCase):
    def setUp(self):
        self._daemon = subprocess.Popen(
            [CROUTD, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0", "--devices=host",
             "--drain-grace=0s", "--upload-idle-timeout=inf", "--upload-min-rate=0"],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(self._stop)
        ready = self._daemon.stdout.readline()
        self._listen, self._metrics = re.match(
            r"croutd ready listen=(\S+) metrics=(\S+)", ready).groups()

    def _stop(self):
        self._daemon.send_signal(signal.SIGTERM)
        self._daemon.wait(TIMEOUT)
        self._daemon.stdout.close()

    def _command(self, *arguments):
        return [CROUTCTL, f"--server={self._listen}", f"--tenant={TENANT}", *arguments]

    def _factor(self, *arguments):
        """Factors the matrix. Returns the handle."""
        done = subprocess.run(self._command("--json", "factor", "-", f"--name={NAME}", *arguments),
                              input=matrix(), text=True, stdout=subprocess.PIPE, timeout=TIMEOUT,
                              check=True)
        return json.loads(done.stdout)["handle"]

    def _get(self):
        """Returns the text of the page and its tree. Fails if the page is not well-formed."""
        with urllib.request.urlopen(f"http://{self._metrics}/", timeout=TIMEOUT) as reply:
            self.assertEqual(reply.headers["Content-Type"], "text/html; charset=utf-8")
            text = reply.read().decode("utf-8")
        return text, xml.etree.ElementTree.fromstring(text)

    def _wait(self, condition):
        """Waits until the page satisfies the condition, because the client sees the end of a call before the page
        shows it. Returns the page.
        """
        end = time.monotonic() + TIMEOUT
        while True:
            text, page = self._get()
            if condition(page):
                return text, page
            self.assertLess(time.monotonic(), end, text)

    def test_an_idle_daemon(self):
        text, page = self._get()
        self.assertIn("host", [heading.text.strip() for heading in page.iter("h3")])
        self.assertIn("No iterative method has run yet.", text)
        self.assertFalse(list(page.iter("script")) + list(page.iter("link")))

    @unittest.skipIf(shutil.which("chromium") is None, "no chromium")
    def test_a_browser_shows_it_all(self):
        """Tests that a headless browser displays the whole page, and that the policy of the page blocks nothing."""
        self._factor("--algorithm=icmpp", "--section-size=8")
        self._wait(lambda page: len(rows(page, "Slowest calls of the last hour")) == 1)
        shown = subprocess.run(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr",
             f"--user-data-dir={self.enterContext(tempfile.TemporaryDirectory())}", "--dump-dom",
             f"http://{self._metrics}/"], text=True, capture_output=True, timeout=TIMEOUT, check=True)
        for heading in ("Devices", "Slowest calls of the last hour", "Latency by phase"):
            self.assertIn(f"<h2>{heading}</h2>", shown.stdout)
        self.assertEqual(shown.stdout.count("<rect"), self._get()[0].count("<rect"))
        self.assertNotIn("CONSOLE", shown.stderr)

    def test_calls_that_ended_and_the_last_iterative_run(self):
        self._factor()
        handle = self._factor("--algorithm=icmpp", "--section-size=8")
        text, page = self._wait(
            lambda page: len(rows(page, "Slowest calls of the last hour")) == 2)
        calls = rows(page, "Slowest calls of the last hour")
        self.assertEqual({call[3] for call in calls}, {"Factorize"})
        self.assertIn("icmpp", {call[5] for call in calls})
        self.assertEqual({call[8] for call in calls}, {TENANT})
        self.assertIn("factor", {row[0] for row in rows(page, "Latency by phase")})
        self.assertEqual([row[:2] for row in rows(page, "Latency by method")], [["Factorize", "2"]])
        self.assertIn("5 by 5 sections of order 8", text)
        self.assertEqual(page.find(".//svg").get("viewBox"), "0 0 5 5")
        covered = sum(int(rect.get("width")) for rect in page.iter("rect"))
        self.assertEqual(covered, 25)
        # A handle gives access to the factor, and a name is private to its tenant.
        self.assertNotIn(handle[:6], text)
        self.assertNotIn(NAME, text)

    def test_a_call_that_waits_for_its_client(self):
        upload = subprocess.Popen(self._command("factor", "-"), stdin=subprocess.PIPE,
                                  stdout=subprocess.DEVNULL)
        banner, rest = matrix().encode().split(b"\n", 1)
        # Writes more than the client buffers before it sends.
        upload.stdin.write(banner + b"\n" + b"% a comment\n" * 300000)
        upload.stdin.flush()
        _, page = self._wait(
            lambda page: "payload" in {cell.text for cell in page.iter("td")})
        (call,) = rows(page, "Calls in flight")
        self.assertEqual(call[1:3], ["Factorize", "payload"])
        self.assertEqual(call[4], TENANT)
        upload.stdin.write(rest)
        upload.stdin.close()
        self.assertEqual(upload.wait(TIMEOUT), 0)
        self._wait(lambda page: "payload" not in {cell.text for cell in page.iter("td")})


if __name__ == "__main__":
    CROUTD, CROUTCTL = map(os.path.abspath, sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
