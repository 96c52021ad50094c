#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the installed product as a user would use it.

Covers croutctl, the examples, the client libraries and the Python wheels. The libraries are installed, moved to
another directory, and found by CMake and pkg-config. The wheels are installed in a new Python environment.

README.md and the pages in docs/ show parts of examples, output of examples, and shell sessions. A fenced block
after one of these lines must match the source tree and the output of the installed programs:

    <!-- example: FILE -->    a part of a file in client/examples or client/python/examples
    <!-- output: PROGRAM -->  the output of a program built from client/examples
    <!-- session: NAME -->    commands after "$ " and their output

    examples_test.py BUILD [--write]    --write updates the blocks

Needs a C and a C++ compiler. Tests that need a Fortran compiler, pkg-config or Eigen are skipped without them.
Tests and sessions with Python are skipped if the tests of the Python client have not created their environment, and
sessions petsc* without Debian's PETSc.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import unittest
import zipfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "monitoring"))
from prometheus_server import free_port  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = ROOT / "client" / "examples"
PYTHON_EXAMPLES = ROOT / "client" / "python" / "examples"
PETSC = pathlib.Path("/usr/lib/petscdir")
PETSC_FILES = ("petsc3.18/*-real/share/petsc/examples/src/ksp/ksp/tutorials/ex2.c",
               "petsc3.18/*-real/lib/python3/dist-packages/petsc4py", "petsc3.18/*-real/include/petsc.h")
TIMEOUT = 300  # seconds, for all sessions of a page
BLOCK = re.compile(r"(<!-- (example|output|session): (\S+) -->\n```\w*\n)(.*?)(```\n)", re.DOTALL)
# Output that differs between runs: times, handles, and numbers that depend on rounding.
VARYING = [(re.compile(pattern, re.MULTILINE), text) for pattern, text in (
    (r"^.*_seconds.*\n", ""), (r"20\d\d-\d\d-\d\dT\S+Z", "TIME"), (r"\b[a-z2-7]{26}\b", "HANDLE"),
    (r"127\.0\.0\.1:\d+", "ADDRESS"), (r"\b(?:\d+(?:\.\d+)?(?:ns|us|ms|[smhd]))+\b", "DURATION"),
    (r"\d+ B|[\d.]+ [KMG]iB", "BYTES"),
    (r'^(\W*(?:backward_error|componentwise_error|refinement_steps)"?:?) .*', r"\1"),
    (r"\[[# ]{10}\]", "BAR"), (r"\d+ of \d+", "SHARE"), (r"-?\d+(\.\d+)?e-\d+|-?\d+\.\d+", "NUMBER"),
    (r"^(cuda|host) .*", "DEVICE"), (r"^(\d+ +\d+ +(?:solve|factorize) ).*", r"\1"),
    (r"^( *\d+ +(?:refactor|reuse)) .*", r"\1"), (r"^(\d+ +)\S+( +\d+ +x_\d)", r"\1\2"), (r" +", " "))]
BUILD = None
WRITE = False


def run(*command, cwd=None, env=None, status=0):
    """Runs a command and returns its output. Raises an error with the output if the exit status is unexpected."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    if done.returncode != status:
        raise AssertionError(f"{command} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout if status == 0 else done.stderr


@contextlib.contextmanager
def daemon(croutd):
    """Runs a daemon until the context ends. Yields its address."""
    process = subprocess.Popen([croutd, "--listen=127.0.0.1:0", "--metrics-listen=127.0.0.1:0",
                                "--devices=host", "--drain-grace=0s"], text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield re.match(r"croutd ready listen=(\S+)", process.stdout.readline()).group(1)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)
        process.stdout.close()


def unvarying(text):
    """Replaces the parts of the text that differ between runs."""
    for pattern, same in VARYING:
        text = pattern.sub(same, text)
    return text


def snippet(name):
    """Returns the part of an example that pages show: in Python everything after the docstring, otherwise the lines
    between [docs] and [end] without their common indentation.
    """
    if name.endswith(".py"):
        return (PYTHON_EXAMPLES / name).read_text(encoding="utf-8").split('"""\n\n', 1)[1]
    lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
    begin = next(i for i, line in enumerate(lines) if "[docs]" in line)
    end = next(i for i, line in enumerate(lines) if "[end]" in line)
    indentation = len(lines[begin]) - len(lines[begin].lstrip())
    return "".join(line[indentation:] + "\n" for line in lines[begin + 1:end])


class Session:
    """A bash that runs the sessions of a page in an empty directory.

    croutd and its clients use free ports, which the output replaces by the default ports. If the page does not
    start croutd, one is running. If the page does not unpack the bundle, it is unpacked in crout/, and croutctl is
    on the PATH. env/ is the Python environment with the wheels, if there is one. The directory contains the Python
    examples that the page shows.
    """

    def __init__(self, test, page):
        text = page.read_text(encoding="utf-8")
        self.python = test.python
        self.ports = {"50051": str(free_port()), "9464": str(free_port())}
        directory = pathlib.Path(test.enterContext(tempfile.TemporaryDirectory()))
        address = f"127.0.0.1:{self.ports['50051']}"
        env = {key: value for key, value in os.environ.items() if not key.startswith("CROUT_")}
        env |= {"CROUT_SERVER": address, "CROUT_LISTEN": address, "CROUT_METRICS_LISTEN": f"127.0.0.1:{self.ports['9464']}",
                "CROUT_DEVICES": "host", "CROUT_STATE_DIR": "none", "CROUT_DRAIN_GRACE": "0s", "HOME": str(directory)}
        if self.python:
            (directory / "env").symlink_to(self.python)
        for kind, name in (block.group(2, 3) for block in BLOCK.finditer(text)):
            if kind == "example" and name.endswith(".py"):
                (directory / name).write_text(snippet(name), encoding="utf-8")
        if "tar -xzf crout-" in text:
            with tarfile.open(directory / "crout-bundle.tar.gz", "w:gz", compresslevel=1) as bundle:
                bundle.add(test.prefix, "crout")
        else:
            (directory / "crout").symlink_to(test.prefix)
            env["PATH"] = f"{test.prefix / 'bin'}:{env['PATH']}"
        self.process = subprocess.Popen(["bash"], cwd=directory, env=env, text=True, start_new_session=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.timer = threading.Timer(TIMEOUT, self.kill)
        self.timer.start()
        test.addCleanup(self.close)
        if "$ croutd" not in text and "$ crout-server" not in text:
            self.run("croutd 2>croutd.log &")

    def can_run(self, name, commands):
        """Returns whether the programs for a session are installed."""
        if name.startswith("petsc") and not all(any(PETSC.glob(file)) for file in PETSC_FILES):
            return False
        return "env/bin" not in commands or self.python is not None

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGTERM)

    def close(self):
        self.timer.cancel()
        self.process.stdin.close()
        self.kill()
        self.process.stdout.read()
        self.process.stdout.close()
        self.process.wait(timeout=60)

    def line(self):
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(f"bash ended, or the page took over {TIMEOUT} s")
        return line

    def run(self, command):
        """Runs a command. Returns its output, or the first line of it if the command runs in the background."""
        self.process.stdin.write(f"{command}\necho @@end\n")
        self.process.stdin.flush()
        output = ""
        while not output.endswith("@@end\n"):
            output += self.line()
        output = output.removesuffix("@@end\n")
        if command.endswith("&") and not output:
            output = self.line()
        for usual, port in self.ports.items():
            output = output.replace(f"127.0.0.1:{port}", f"127.0.0.1:{usual}")
        return output

    def again(self, block):
        """Returns the block with the current output of its commands."""
        text = ""
        for line in block.splitlines():
            if line.startswith("$ "):
                text += line + "\n" + self.run(line[2:])
        return text


class Examples(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.directory = pathlib.Path(cls.enterClassContext(tempfile.TemporaryDirectory()))
        run("cmake", "--install", BUILD, "--prefix", cls.directory / "made", "--strip")
        cls.prefix = (cls.directory / "made").rename(cls.directory / "moved")
        cls.programs = cls.directory / "programs"
        cls.configure(cls.programs, cls.prefix / "share/crout/examples",
                      "-DCMAKE_C_FLAGS=-std=c99 -pedantic -Wall -Wextra -Werror")
        run("cmake", "--build", cls.programs)
        cls.wheels = cls.directory / "wheels"
        cls.python = cls.install_wheels()
        cls.address = cls.enterClassContext(daemon(cls.prefix / "bin/croutd"))

    @classmethod
    def install_wheels(cls):
        """Builds the wheels, and installs the client and the server in a Python environment that also has the system's
        packages. Returns its directory, or None without Python packages.
        """
        python = BUILD / "tests/python/environment/bin/python"
        if not python.exists():
            return None
        run(python, ROOT / "deploy/wheels.py", cls.prefix, cls.wheels)
        environment = cls.directory / "environment"
        run(python, "-m", "venv", "--system-site-packages", environment)
        run(environment / "bin/pip", "install", "--no-index", "--find-links", cls.wheels, "crout[server]")
        return environment

    @classmethod
    def configure(cls, build, source, *options, status=0):
        ccache = [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")
                  if shutil.which("ccache")]
        return run("cmake", "-S", source, "-B", build, "-G", "Ninja",
                   f"-DCMAKE_PREFIX_PATH={cls.prefix}", *ccache, *options, status=status)

    def outputs(self):
        """Returns the output of each example by the name of its program."""
        return {path.name: run(path, self.address) for path in sorted(self.programs.iterdir())
                if path.is_file() and os.access(path, os.X_OK)}

    def current(self, page, outputs, seen):
        """Returns the text of a page with its blocks updated."""
        session = None

        def block_now(block):
            nonlocal session
            kind, name, shown = block.group(2, 3, 4)
            seen.add((kind, name))
            now = shown
            if kind == "example":
                now = snippet(name)
            elif kind == "output":
                now = outputs.get(name, shown)  # unchanged if the program was not built
            else:
                session = session or Session(self, page)
                if session.can_run(name, shown):
                    printed = session.again(shown)
                    now = printed if WRITE or unvarying(printed) != unvarying(shown) else shown
            return block.group(1) + now + block.group(5)

        return BLOCK.sub(block_now, page.read_text(encoding="utf-8"))

    def test_pages_show_the_examples_and_what_they_print(self):
        outputs = self.outputs()
        self.assertLessEqual({"schwarz", "series_c", "solve_c", "solve_cc"}, outputs.keys())
        seen = set()
        for page in PAGES:
            with self.subTest(page.relative_to(ROOT)):
                written = self.current(page, outputs, seen)
                if WRITE:
                    page.write_text(written, encoding="utf-8")
                else:
                    self.assertEqual(page.read_text(encoding="utf-8"), written, "run examples_test.py BUILD --write")
        self.assertLessEqual({("example", "solve.cc"), ("example", "quick_start.py"), ("output", "schwarz"),
                              ("session", "command_line"), ("session", "errors")}, seen)

    def test_the_sample_configuration_has_every_setting(self):
        sample = (self.prefix / "share/crout/croutd.toml").read_text(encoding="utf-8")
        settings = self.directory / "croutd.toml"
        every = re.sub(r"^# ([\w-]+ = )", r"\1", sample, flags=re.MULTILINE)
        names = re.findall(r"^([\w-]+) = ", every, re.MULTILINE)
        # Omits settings that name files, because these exist only on the machine of an operator.
        settings.write_text(re.sub(r"^(tls-|identities|quotas|token-)", r"# \1", every, flags=re.MULTILINE), encoding="utf-8")
        croutd = self.prefix / "bin/croutd"
        known = re.findall(r"^ +--([\w-]+) .*\(Env:CROUT_(?!CONFIG)", run(croutd, "--help"), re.MULTILINE)
        self.assertEqual(sorted(names), sorted(known))
        self.assertIn("settings are valid", run(croutd, f"--config={settings}", "--check-config"))

    def test_manual_pages_and_completion_are_installed(self):
        share = self.prefix / "share"
        for page in ("croutctl", "croutctl-solve", "croutctl-verify"):
            self.assertIn(".SH EXIT STATUS", (share / f"man/man1/{page}.1").read_text(encoding="utf-8"))
        for script in ("bash-completion/completions/croutctl", "zsh/site-functions/_croutctl",
                       "fish/vendor_completions.d/croutctl.fish"):
            self.assertIn("conjugate-transpose", (share / script).read_text(encoding="utf-8"))

    def test_the_examples_in_the_help_run(self):
        croutctl = self.prefix / "bin/croutctl"
        directory = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        shutil.copy(EXAMPLES / "convection_diffusion.mtx", directory)
        env = dict(os.environ, CROUT_SERVER=self.address, PATH=f"{croutctl.parent}:{os.environ['PATH']}")
        main_help = run(croutctl, "--help")
        commands = re.search(r"^Factor and solve:\n.*?(?=^Connection:)", main_help, re.MULTILINE | re.DOTALL).group()
        names = re.findall(r"^  ([a-z-]+)", commands, re.MULTILINE)
        self.assertIn("version", names)
        for help_text in [main_help] + [run(croutctl, name, "--help") for name in names]:
            examples = re.search(r"^Examples:\n((?:  .*\n){2})", help_text, re.MULTILINE).group(1).splitlines()
            for example in examples:
                with self.subTest(example.strip()):
                    if "--interval" not in example:  # without it, the command runs until interrupted
                        run("bash", "-c", example.split("|")[0], cwd=directory, env=env)

    def wheel(self, name):
        """Returns the path and the contents of a wheel."""
        if not self.python:
            self.skipTest("no Python packages")
        (path,) = self.wheels.glob(f"{name}-*.whl")
        return path, self.enterContext(zipfile.ZipFile(path))

    def test_the_wheel_of_the_server(self):
        path, wheel = self.wheel("crout_server")
        self.assertRegex(path.name, r"^crout_server-\d+\.\d+\.\d+-py3-none-manylinux_2_3\d_\w+\.whl$")
        licenses = next(name for name in wheel.namelist() if name.endswith("/licenses/LICENSE")).removesuffix("LICENSE")
        recorded = wheel.read(f"{licenses}libraries.txt").decode()
        self.assertRegex(recorded, r"(?m)^libklu\.so\.1: (libklu1)$(.|\n)*^\1 .* Debian's source suitesparse ")
        for text in ("libklu1.txt", "LGPL-2.1"):
            self.assertIn(licenses + text, wheel.namelist())
        # The daemon and its libraries come from the wheel, also where nothing else of Crout is installed.
        script = ("import crout\nwith crout.local(device='host') as c: print(c.solve([[4.0, 1.0], [1.0, 3.0]], [5.0, 4.0]), "
                  "open(f'/proc/{c._stop.peek()[1].__self__._process.pid}/maps').read())")
        output = run(self.python / "bin/python", "-I", "-c", script, env={"PATH": "/usr/bin:/bin"})
        self.assertIn("[1. 1.]", output)
        self.assertIn("/crout_server/bin/croutd\n", output)
        self.assertIn("/crout_server/lib/crout/libklu.so.1\n", output)
        for name, version in (("crout-server", "--version"), ("croutd", "--version"), ("croutctl", "version")):
            self.assertRegex(run(self.python / "bin" / name, version, env={}), r"\b0\.\d+\.\d+ \(")

    def test_the_wheel_of_the_cuda_device(self):
        if not (self.prefix / "lib/crout/libcrout_cuda.so").exists():
            self.skipTest("no CUDA")
        path, wheel = self.wheel("crout_server_cu*")
        cuda = re.match(r"crout_server_cu(\d+)-", path.name).group(1)
        self.assertIn(f"crout_server/cu{cuda}/libcrout_cuda.so", wheel.namelist())
        (metadata,) = (name for name in wheel.namelist() if name.endswith("/METADATA"))
        self.assertIn(f"Requires-Dist: nvidia-cudss-cu{cuda}==1.*\n", wheel.read(metadata).decode())

    @unittest.skipUnless(shutil.which("fish"), "no fish")
    def test_fish_completes(self):
        script = self.prefix / "share/fish/vendor_completions.d/croutctl.fish"

        def completed(words):
            return run("fish", "--no-config", "-c", f"source {script}; complete -C '{words}'")

        self.assertIn("solve-batch\t", completed("croutctl sol"))
        self.assertIn("c128\t", completed("croutctl solve x --dtype "))

    @unittest.skipUnless(shutil.which("zsh"), "no zsh")
    def test_zsh_loads_its_completion(self):
        functions = self.prefix / "share/zsh/site-functions"
        print_its_function = ("autoload -Uz compinit; compinit -u -D; autoload +X _croutctl; "
                              "print ${_comps[croutctl]} ${+functions[_croutctl]}")
        self.assertEqual(run("zsh", "-f", "-c", f"fpath=({functions} $fpath); {print_its_function}"), "_croutctl 1\n")

    def test_what_operators_need_is_installed(self):
        deploy = self.prefix / "share/crout/deploy"
        for name in ("prometheus/prometheus.yml", "prometheus/rules/alerts.yml", "alertmanager/alertmanager.yml",
                     "grafana/dashboards/crout.json", "kubernetes/base/statefulset.yaml", "proxies/nginx.conf"):
            self.assertTrue((deploy / name).is_file(), name)
        self.assertIn("# Running Crout", (self.prefix / "share/doc/crout/operations.md").read_text(encoding="utf-8"))
        tls = self.directory / "tls"
        run(deploy / "tls/make-certificates.sh", tls, "localhost")
        self.assertTrue((tls / "server.crt").is_file())

    def test_eigen_matrices_of_both_orders(self):
        program = self.programs / "solve_eigen"
        if not program.exists():
            self.skipTest("no Eigen")
        self.assertEqual(run(program, self.address), "X is right\n" * 3)

    def pkg_config(self, *options):
        """Returns the words that pkg-config prints for crout."""
        if not shutil.which("pkg-config"):
            self.skipTest("no pkg-config")
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.prefix / "lib/pkgconfig"))
        return run("pkg-config", *options, "crout", env=env).split()

    def test_c_by_pkg_config(self):
        program = self.directory / "by_hand"
        run("cc", "-o", program, EXAMPLES / "solve.c", *self.pkg_config("--cflags", "--libs"))
        self.assertIn("x = 1.0000 2.0000 3.0000", run(program, self.address))

    @unittest.skipUnless(shutil.which("gfortran"), "no gfortran")
    def test_the_fortran_module_by_pkg_config(self):
        program = self.directory / "crout_f90_test"
        run("gfortran", "-std=f2008", "-Wall", "-Wextra", "-Werror", "-o", program,
            *self.pkg_config("--variable=fortran_module"),
            pathlib.Path(__file__).with_name("crout_f90_test.f90"),
            *self.pkg_config("--libs"), cwd=self.directory)
        run(program, self.address)

    def test_a_new_users_first_minutes(self):
        """Covers only some clients. C++ and Python have separate tests, because they take longer to install."""
        surfaces = ["operator", "croutctl"]
        surfaces += ["c"] * bool(shutil.which("pkg-config"))
        surfaces += ["fortran"] * bool(shutil.which("pkg-config") and shutil.which("gfortran"))
        self.assertIn("all steps passed", run(ROOT / "deploy/new_user.sh", self.prefix, *surfaces))

    def test_c_needs_no_development_files_of_grpc(self):
        self.configure(self.directory / "c_only", self.prefix / "share/crout/examples",
                       "-DWITH_CXX=OFF", "-DCMAKE_DISABLE_FIND_PACKAGE_gRPC=ON",
                       "-DCMAKE_DISABLE_FIND_PACKAGE_Protobuf=ON")

    def test_another_minor_version_is_not_taken(self):
        source = self.directory / "newer"
        source.mkdir()
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(newer LANGUAGES NONE)\n"
            "find_package(crout 0.2 REQUIRED COMPONENTS c)\n", encoding="utf-8")
        errors = self.configure(self.directory / "newer_build", source, status=1)
        self.assertIn("requested version", errors)

    def test_only_what_the_header_declares_is_exported(self):
        header = (self.prefix / "include/crout/crout.h").read_text(encoding="utf-8")
        declared = set(re.findall(r"^CROUT_API .*?(crout_\w+)\(", header, re.MULTILINE))
        listed = run("nm", "-D", "--defined-only", self.prefix / "lib/libcrout.so").split("\n")
        exported = {line.split()[2].split("@")[0] for line in listed
                    if len(line.split()) == 3 and line.split()[1] != "A"}
        self.assertEqual(exported, declared)

    def test_fortran_has_the_codes_of_the_header(self):
        def codes(text, pattern):
            return {name.lower(): int(value) for name, value in re.findall(pattern, text)}

        header = (self.prefix / "include/crout/crout.h").read_text(encoding="utf-8")
        enumerations = re.findall(r"typedef enum (crout_code|crout_phase|crout_warning) \{(.*?)\} \1;", header, re.DOTALL)
        header = codes("".join(text for _, text in enumerations), r"\n  (CROUT_\w+) = (-?\d+)")
        module = (self.prefix / "share/crout/fortran/crout.f90").read_text(encoding="utf-8")
        module = codes(module, r"enumerator :: (\w+) = (\S+)")
        self.assertEqual(header, module)
        self.assertIn("crout_singular", header)

    def test_programs_report_a_missing_server(self):
        for name in self.outputs():
            with self.subTest(name):
                self.assertIn("failed to connect", run(self.programs / name, "127.0.0.1:1", status=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    BUILD, WRITE = arguments.build.resolve(), arguments.write
    unittest.main(argv=["examples_test.py"], verbosity=2)
