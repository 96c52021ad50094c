#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the image of deploy/Dockerfile with buildah on a new Debian 12, and runs it as docs/operations/containers.md does.

usage: image_test.py BUILD [--full] [UNITTEST_ARGUMENT...]
  BUILD                without --full, programs of this build replace the Dockerfile's build stage
  --full               builds the whole Dockerfile
  CROUT_MIRROR         Debian mirror, http://deb.debian.org/debian by default
  CROUT_BASE_SYSTEM    tar of a Debian 12, instead of debootstrap

Requires root, buildah, debootstrap, ip, a network and the Python client. The container runs in a network namespace, so
that it is reached like the published port of a container.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "operations" / "containers.md"
TIMEOUT = 300  # seconds
OUTSIDE, INSIDE = "10.231.94.1", "10.231.94.2"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BUILD = None
FULL = False


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], text=True, capture_output=True, **options)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout[-8000:]}{done.stderr[-8000:]}")
    return done.stdout.strip()


def wait_until(condition, what):
    deadline = time.monotonic() + TIMEOUT
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {TIMEOUT} s: {what()}")
        time.sleep(0.05)
    return value


def docker_run_options(directory):
    """Runs the block of the page with `docker run` in `directory`. Returns the options, as docker gets them."""
    block = next(block for block in re.findall(r"^```\n(.*?)^```", PAGE.read_text(), re.M | re.S)
                 if "docker run" in block)
    (directory / "deploy").symlink_to(ROOT / "deploy")
    docker = "docker() { [ $1 != run ] || printf '%s\\0' \"${@:2}\" >options; }\ncroutctl() { :; }\n"
    run("bash", "-euc", docker + block, cwd=directory)
    return (directory / "options").read_text().split("\0")[:-1]


class Container:
    """croutd in a container of the image, in the network namespace."""

    def __init__(self, test, *options):
        self._output, self._errors = test.directory / "output", test.directory / "errors"
        with self._output.open("w") as output, self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                ["ip", "netns", "exec", test.namespace, *test.buildah, "run", *options, test.container, "--",
                 *test.config["Entrypoint"]], stdout=output, stderr=errors)
        test.addCleanup(self.end)

    def errors(self):
        return self._errors.read_text()

    def wait_until_ready(self):
        wait_until(lambda: "croutd ready" in self._output.read_text() or self._process.poll() is not None, self.errors)
        if self._process.poll() is not None:
            raise AssertionError(self.errors())

    def pid(self):
        """Returns the process of croutd, a descendant of buildah. Any thread of buildah can be its parent."""
        left = [self._process.pid]
        while left:
            process = pathlib.Path("/proc", str(left.pop()))
            if (process / "comm").read_text() == "croutd\n":
                return int(process.name)
            for children in process.glob("task/*/children"):
                left += children.read_text().split()
        raise AssertionError(f"no croutd below buildah: {self.errors()}")

    def terminate(self):
        """Sends the signal with which `docker stop` begins."""
        os.kill(self.pid(), signal.SIGTERM)

    def wait(self):
        return self._process.wait(TIMEOUT)

    def end(self):
        if self._process.poll() is None:
            self.terminate()
            self.wait()


class ImageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = directory = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(subprocess.run, ["rm", "-rf", "--one-file-system", directory])
        # A Kubernetes volume or a mounted directory is reachable for all users.
        directory.chmod(0o755)
        cls.buildah = ["buildah", "--storage-driver=vfs", f"--root={directory}/storage", f"--runroot={directory}/run"]
        os.environ["BUILDAH_ISOLATION"] = "chroot"
        begin = time.monotonic()
        base = os.environ.get("CROUT_BASE_SYSTEM")
        if not base:
            base = directory / "base"
            mirror = os.environ.get("CROUT_MIRROR", "http://deb.debian.org/debian")
            try:
                run("debootstrap", "--variant=minbase", "bookworm", base, mirror)
            except AssertionError as error:
                raise unittest.SkipTest(f"no base system from {mirror}: {error}") from error
        print(f"base system: {time.monotonic() - begin:.0f} s", flush=True)
        container = run(*cls.buildah, "from", "scratch")
        run(*cls.buildah, "add", container, base, "/")
        run(*cls.buildah, "commit", "--rm", container, "base")
        shutil.rmtree(directory / "base", ignore_errors=True)
        dockerfile = ROOT / "deploy" / "Dockerfile"
        contexts = []
        if not FULL:
            text = dockerfile.read_text()
            begins = re.search(r"^FROM \$\{BUILD_BASE\} AS build\n", text, re.M).start()
            ends = re.search(r"^FROM \$\{RUNTIME_BASE\}\n", text, re.M).start()
            dockerfile = directory / "Dockerfile"
            dockerfile.write_text(text[:begins] + text[ends:])
            run("cmake", "--install", BUILD, "--component", "runtime", "--strip",
                "--prefix", directory / "built/opt/crout")
            contexts = [f"--build-context=build={directory}/built"]
        run(*cls.buildah, "build", "--pull-never", "--layers=false", "--format=docker", "--tag=crout:cpu",
            f"--file={dockerfile}", *contexts, "--build-arg=BUILD_BASE=localhost/base",
            "--build-arg=RUNTIME_BASE=localhost/base", f"--build-arg=COMMIT={COMMIT}", ROOT)
        print(f"image: {time.monotonic() - begin:.0f} s", flush=True)
        cls.config = json.loads(run(*cls.buildah, "inspect", "--type=image", "crout:cpu"))["Docker"]["config"]
        cls.container = run(*cls.buildah, "from", "--pull-never", "crout:cpu")
        cls.namespace = f"crout-{os.getpid()}"
        link = f"crout{os.getpid()}"[:15]
        run("ip", "netns", "add", cls.namespace)
        cls.addClassCleanup(run, "ip", "netns", "delete", cls.namespace)
        run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", cls.namespace)
        run("ip", "address", "add", f"{OUTSIDE}/30", "dev", link)
        run("ip", "link", "set", link, "up")
        run("ip", "-n", cls.namespace, "address", "add", f"{INSIDE}/30", "dev", "eth0")
        run("ip", "-n", cls.namespace, "link", "set", "eth0", "up")
        run("ip", "-n", cls.namespace, "link", "set", "lo", "up")

    def client(self, **options):
        return self.enterContext(crout.connect(f"{INSIDE}:50051", timeout=TIMEOUT, **options))

    def in_container(self, *command):
        """Returns the exit code of a command in the container."""
        return subprocess.run(["ip", "netns", "exec", self.namespace, *self.buildah, "run", self.container, "--",
                               *command], capture_output=True, timeout=TIMEOUT).returncode

    def healthy(self):
        return self.in_container(*self.config["Healthcheck"]["Test"][1:]) == 0

    def assert_solves(self, client):
        np.testing.assert_allclose(client.solve(np.array([[4.0, 1.0], [1.0, 3.0]]), np.array([5.0, 4.0])), [1, 1])

    def test_the_configuration(self):
        self.assertEqual(self.config["Labels"]["org.opencontainers.image.revision"], COMMIT)
        self.assertEqual(self.config["User"], "10001:10001")
        self.assertEqual(set(self.config["ExposedPorts"]), {"50051/tcp", "9464/tcp"})
        state = dict(entry.split("=", 1) for entry in self.config["Env"])["CROUT_STATE_DIR"]
        self.assertIn(state, self.config["Volumes"])
        self.assertEqual(self.in_container("test", "-w", state), 0)
        self.assertNotEqual(self.in_container("test", "-w", "/opt/crout"), 0)
        if FULL:
            version = run(*self.buildah, "run", self.container, "--", "croutd", "--version")
            self.assertIn(COMMIT[:12], version)

    def test_no_start_without_tls_or_insecure(self):
        container = Container(self)
        self.assertEqual(container.wait(), 2)
        self.assertIn("--insecure", container.errors())
        self.assertFalse(self.healthy())

    def test_the_run_line_of_the_page(self):
        options = docker_run_options(self.directory)
        self.assertEqual(options.pop(), "crout:cpu")
        buildah_options = [option for option in options if option.startswith(("--env=", "--volume=", "--user="))]
        self.assertIn("--publish=127.0.0.1:50051:50051", options)
        container = Container(self, *buildah_options, "--env=CROUT_DRAIN_GRACE=5s")
        container.wait_until_ready()
        client = self.client(tls=True, ca=self.directory / "tls/ca.crt", server_name="localhost")
        self.assert_solves(client)
        self.assertTrue(self.healthy())

        # The drain: calls are served during the grace period, and the daemon ends with 0.
        container.terminate()
        wait_until(lambda: "drain_started" in container.errors(), container.errors)
        self.assert_solves(client)
        self.assertFalse(self.healthy())
        self.assertEqual(container.wait(), 0)
        self.assertIn("daemon_stopped", container.errors())

    def test_a_key_of_a_kubernetes_secret(self):
        """Tests the user of the image with files as in a Secret's volume: of root and the group, behind links."""
        run(ROOT / "deploy/tls/make-certificates.sh", self.directory / "made", "localhost")
        volume = self.directory / "secret"
        version = volume / "..2026"
        version.mkdir(parents=True)
        (volume / "..data").symlink_to(version.name)
        for made, name in ("server.crt", "tls.crt"), ("server.key", "tls.key"):
            shutil.copy(self.directory / "made" / made, version / name)
            os.chown(version / name, 0, 10001)
            (version / name).chmod(0o440)
            (volume / name).symlink_to(f"..data/{name}")
        container = Container(self, f"--volume={volume}:/etc/crout/tls:ro", "--env=CROUT_TLS_CERT=/etc/crout/tls/tls.crt",
                              "--env=CROUT_TLS_KEY=/etc/crout/tls/tls.key", "--env=CROUT_DRAIN_GRACE=0s")
        container.wait_until_ready()
        self.assert_solves(self.client(tls=True, ca=self.directory / "made/ca.crt", server_name="localhost"))


if __name__ == "__main__":
    BUILD = os.path.abspath(sys.argv.pop(1))
    FULL = "--full" in sys.argv
    sys.argv = [argument for argument in sys.argv if argument != "--full"]
    missing = [program for program in ("buildah", "debootstrap", "ip") if not shutil.which(program)]
    if missing or os.getuid() != 0:
        print(f"skipped: requires root and {missing}")
        sys.exit(77)
    if subprocess.run(["unshare", "--net", "--mount", "true"]).returncode != 0:
        print("skipped: namespaces cannot be made here")
        sys.exit(77)
    import crout
    import numpy as np
    result = unittest.main(exit=False).result
    sys.exit(77 if result.skipped else not result.wasSuccessful())
