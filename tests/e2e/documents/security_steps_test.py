# SPDX-License-Identifier: Apache-2.0
"""Runs the steps in docs/operations/security.md and docs/install.md that set up TLS and identities, as written.

usage: security_steps_test.py CROUTD CROUTCTL

All lines run in one shell, in a directory that contains only deploy/, with croutd and croutctl on the PATH. Ports
are replaced by free ports. A line must exit with 0, or with the code in its comment `# exit code N`.
"""

import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "monitoring"))
from prometheus_server import free_port  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
TIMEOUT = 60
PROGRAMS = []


def block_after(path, marker):
    """Returns the fenced block after the line `marker` of a page."""
    text = (ROOT / path).read_text(encoding="utf-8")
    return re.search(r"```\n(.*?)```", text[text.index(marker):], re.DOTALL).group(1)


def commands(block):
    """Returns (command, exit code) for the lines of a block. Joins continued lines and skips comments."""
    found = []
    for line in block.replace("\\\n", " ").splitlines():
        code = re.search(r"# exit code (\d+)$", line)
        if line and not line.startswith("#"):
            found.append((line, int(code.group(1)) if code else 0))
    return found


class Shell:
    """A bash that runs commands in sequence."""

    def __init__(self, directory, port):
        self.port = str(port)
        self.log = directory / "log"
        programs = directory.parent / "bin"
        programs.mkdir()
        for program in PROGRAMS:
            (programs / pathlib.Path(program).name).symlink_to(program)
        env = {key: value for key, value in os.environ.items() if not key.startswith("CROUT_")}
        env |= {"PATH": f"{programs}:{env['PATH']}", "HOME": str(directory), "CROUT_SERVER": f"127.0.0.1:{port}",
                "CROUT_METRICS_LISTEN": "127.0.0.1:0", "CROUT_DEVICES": "host", "CROUT_STATE_DIR": "none",
                "CROUT_DRAIN_GRACE": "0s"}
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(["bash"], cwd=directory, env=env, text=True, stderr=log,
                                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def run(self, command):
        """Runs a command. Returns its exit code and its standard output."""
        command = re.sub(r"\b50051\b", self.port, command)
        self.process.stdin.write(f"{command}\necho; echo @@ $?\n" if command.endswith("&") else
                                 f"{command}\ncode=$?; echo; echo @@ $code\n")
        self.process.stdin.flush()
        output = []
        for line in self.process.stdout:
            if done := re.fullmatch(r"@@ (\d+)\n", line):
                return int(done.group(1)), "".join(output)
            output.append(line)
        raise AssertionError(f"the shell ended: {self.log.read_text()}")

    def end(self):
        self.process.stdin.write("kill $(jobs -p); wait\n")
        self.process.stdin.close()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(timeout=TIMEOUT)


class SecuritySteps(unittest.TestCase):
    def shell(self):
        place = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        directory = place / "empty"
        directory.mkdir()
        shutil.copytree(ROOT / "deploy" / "tls", directory / "deploy" / "tls",
                        ignore=shutil.ignore_patterns("trial"))
        shell = Shell(directory, free_port())
        self.addCleanup(shell.end)
        return shell

    def eventually(self, condition, what):
        deadline = time.monotonic() + TIMEOUT
        while not condition():
            self.assertLess(time.monotonic(), deadline, what)
            time.sleep(0.05)

    def listens(self, port):
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(port))) == 0

    def run_steps(self, shell, steps):
        for command, expected in steps:
            code, output = shell.run(command)
            self.assertEqual(code, expected, f"{command}\n{output}\n{shell.log.read_text()}")
            if command.endswith("&"):
                self.eventually(lambda: self.listens(shell.port), shell.log.read_text())

    def test_the_steps_of_the_security_page(self):
        steps = commands(block_after("docs/operations/security.md", "## From nothing to encrypted and authenticated"))
        self.assertGreater(len(steps), 10)
        renewal = next(i for i, (command, _) in enumerate(steps) if "sed" in command)
        shell = self.shell()
        self.run_steps(shell, steps[:renewal])
        alice = "croutctl --tls --ca=tls/ca.crt --token-file=alice.token list"
        self.assertEqual(shell.run(alice)[0], 0)
        self.run_steps(shell, steps[renewal:renewal + 1])
        self.eventually(lambda: shell.run(alice)[0] == 20, "the token is withdrawn")
        served = ("openssl s_client -connect 127.0.0.1:50051 </dev/null 2>/dev/null | "
                  "openssl x509 -noout -fingerprint")
        made = "openssl x509 -noout -fingerprint -in tls/server.crt"
        old = shell.run(made)[1]
        self.assertEqual(shell.run(served)[1], old)
        self.run_steps(shell, steps[renewal + 1:])
        self.assertNotEqual(shell.run(made)[1], old)
        self.eventually(lambda: shell.run(served)[1] == shell.run(made)[1], "the new certificate")

    def test_the_steps_of_install_md(self):
        steps = commands(block_after("docs/install.md", "<!-- steps: remote -->"))
        shell = self.shell()
        self.run_steps(shell, steps)
        self.assertIn("first", shell.run("croutctl --server=lab list")[1])


if __name__ == "__main__":
    PROGRAMS[:] = [pathlib.Path(program).resolve() for program in sys.argv[1:3]]
    del sys.argv[1:3]
    unittest.main()
