#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests prose.py, commit_subject.py and the hook that runs commit_subject.py, in small repositories."""

import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
from unittest import mock

FOLDER = pathlib.Path(__file__).parent
sys.path.insert(0, str(FOLDER))
import commit_subject  # noqa: E402
import history  # noqa: E402
import prose  # noqa: E402


class Repository(unittest.TestCase):
    """Has an empty repository in a temporary folder."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.git("init", "--quiet")
        self.git("config", "user.name", "a")
        self.git("config", "user.email", "a@localhost")

    def git(self, *arguments, check=True, **environment):
        return subprocess.run(["git", *arguments], cwd=self.root, check=check, capture_output=True, text=True,
                              env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.root), **environment})

    def commit(self, subject, date="2026-01-02T12:00:00+00:00", check=True, **files):
        for name, text in files.items():
            (self.root / name.replace("_", ".")).write_text(text)
        self.git("add", "--all")
        return self.git("commit", "--quiet", "--message", subject, check=check,
                        GIT_AUTHOR_DATE=date, GIT_COMMITTER_DATE=date)


class CommentsTest(unittest.TestCase):
    def rules(self, path, text):
        return [(finding.line, finding.rule) for finding in prose.check(path, textwrap.dedent(text))]

    def test_openers_of_each_kind_of_comment(self):
        for path, text in (("a.h", "// Of a matrix.\n"), ("a.cc", "int a;  // Of a matrix.\n"), ("a.py", "# Of a matrix.\n"),
                           ("a.py", '"""Of a matrix."""\n'), ("a.py", "a = 1  # Of a matrix.\n"), ("a.sh", "# Of a matrix.\n")):
            with self.subTest(text=text):
                self.assertEqual([(1, "opens with Of")], self.rules(path, text))

    def test_every_opener(self):
        for opener in ("Of", "What", "As", "Who", "Whose", "Where", "So that", "How"):
            self.assertEqual([(1, f"opens with {opener}")], self.rules("a.h", f"// {opener} rows move.\n"))

    def test_openers_in_lower_case(self):
        for path, text in (("a.h", "int a;  // of a matrix\n"), ("a.cu", "f();  // as in a job\n"), ("a.sh", "a=1  # of a matrix\n"),
                           ("a.py", "a = 1  # so that it is one\n"), ("a.proto", "A = 0;  // what was sent\n")):
            with self.subTest(text=text):
                (line, rule), = self.rules(path, text)
                self.assertEqual(1, line)
                self.assertRegex(rule, "^opens with (of|as|so that|what)$")

    def test_every_comment_after_code_opens(self):
        for path, mark in (("a.h", "//"), ("a.py", "#"), ("a.sh", "#")):
            text = f"a=1  {mark} order\nb=2  {mark} of a matrix,\n{mark} of any order\n"
            self.assertEqual([(2, "opens with of")], self.rules(path, text))

    def test_only_the_first_line_of_a_paragraph_opens(self):
        self.assertEqual([(6, "opens with What")], self.rules("a.h", """\
            // Returns the order
            // Of the matrix, or a longer word:
            // Offset, Whatever, Assembly,
            // of rows.
            //
            // What remains.
            """))

    def test_license_line_precedes_the_opener(self):
        for path, mark in (("a.h", "//"), ("a.py", "#"), ("a.sh", "#")):
            text = f"{mark} SPDX-License-Identifier: Apache-2.0\n{mark} Of a matrix.\n"
            self.assertEqual([(2, "opens with Of")], self.rules(path, text))

    def test_good_comments_and_strings_are_left_alone(self):
        self.assertEqual([], self.rules("a.cc", """\
            // Offsets of the rows. Asserts nothing.
            const char* a = "http://Of whoever";
            """))
        self.assertEqual([], self.rules("a.py", 'a = "# Of whoever"\n'))
        self.assertEqual([], self.rules("a.sh", '#!/bin/bash\na=${b#Of whoever}\n'))

    def test_python_that_cannot_be_parsed(self):
        self.assertEqual([(2, "opens with Of")], self.rules("a.py", 'a = """\n# Of a matrix.\n'))

    def test_words(self):
        self.assertEqual([(1, "whoever"), (2, "told")], self.rules("a.cu", "// Refuses whoever calls\n// and is told.\n"))
        self.assertEqual([], self.rules("a.cu", '// Prints "whoever" and `told`.\n'))

    def test_documents(self):
        self.assertEqual([(1, "such a one"), (2, "anew"), (2, "says")], self.rules("a.md", """\
            What such a one is: users know `whoever`.
            The server says that it starts anew.
            ```
            whoever
            ```
            """))

    def test_every_pattern_is_valid_by_itself(self):
        for index, (pattern, _) in enumerate(prose.WORDS):
            self.assertIn(f"(?P<w{index}>", prose.WORD.pattern)
            self.assertNotRegex(pattern, r"\((?!\?)")  # without groups, `lastgroup` is the whole pattern


class AddedLinesTest(Repository):
    def test_old_lines_and_other_files_are_not_reported(self):
        self.commit("Add a", a_h="// Of old.\nint a;\n", b_h="// Of old.\n")
        self.commit("Change a", a_h="// Of old.\nint a;\n// Of new.\n", c_bin="whoever\n", d_md="Whoever.\n")
        found = prose.check_added("HEAD~1", self.root)
        self.assertEqual([("a.h", 3), ("d.md", 1)], [(finding.path, finding.line) for finding in found])

    def test_uncommitted_lines_and_removed_files(self):
        self.commit("Add a", a_h="int a;\n", b_h="int b;\n")
        (self.root / "a.h").write_text("int a;  // Of new.\n")
        (self.root / "b.h").unlink()
        self.assertEqual([("a.h", 1)], [(finding.path, finding.line) for finding in prose.check_added("HEAD", self.root)])

    def test_base_is_a_day_before_the_last_commit(self):
        self.commit("Add a", date="2026-01-01T00:00:00+00:00", a_h="1")
        self.commit("Add b", date="2026-01-02T12:00:00+00:00", b_h="1")
        first = self.git("rev-list", "--max-parents=0", "HEAD").stdout.strip()
        self.assertEqual(first, history.base_commit(self.root))
        self.commit("Add c", date="2026-01-03T11:00:00+00:00", c_h="1")
        self.assertEqual(first, history.base_commit(self.root))
        self.commit("Add d", date="2026-01-03T13:00:00+00:00", d_h="1")
        self.assertEqual(self.git("rev-parse", "HEAD~2").stdout.strip(), history.base_commit(self.root))

    def test_base_of_a_young_repository_is_its_first_commit(self):
        self.commit("Add a", a_h="1")
        self.commit("Add b", b_h="1")
        self.assertEqual(self.git("rev-parse", "HEAD~1").stdout.strip(), history.base_commit(self.root))


class LengthTest(Repository):
    def test_limits(self):
        with mock.patch.dict(prose.LENGTHS, {"a.md": 2}, clear=True):
            for lines, messages in ((2, 0), (3, 1)):
                (self.root / "a.md").write_text("line\n" * lines)
                self.assertEqual(messages, len(prose.too_long(self.root)))


class CommitSubjectTest(Repository):
    def test_subjects(self):
        for subject in ("Fix the retry delay of full queues", "Add a preset for coverage", "Use one stream", "Merge branch 'a'",
                        "Address the sparse review", "Speed up solves", "Process words", "Add" + "d" * 69):
            with self.subTest(subject=subject):
                self.assertEqual([], commit_subject.problems(subject))
        for subject in ("", "Say why", "Keep what it was", "Added tests", "Fixes a", "Adding b", "Uses c", "Moved d", "add e", "Add f.",
                        "Add" + "d" * 70):
            with self.subTest(subject=subject):
                self.assertEqual(1, len(commit_subject.problems(subject)))

    def test_subject_is_the_first_line_that_is_no_comment(self):
        self.assertEqual("Add a", commit_subject.subject_of("# Of git\n\nAdd a\n\nA body.\n"))

    def test_hook(self):
        (self.root / "tests").mkdir()
        (self.root / "tests" / "ci").symlink_to(FOLDER.resolve())
        self.git("config", "core.hooksPath", "tests/ci/hooks")
        refused = self.commit("Say why", a_h="1", check=False)
        self.assertNotEqual(0, refused.returncode)
        self.assertIn('begins with "Say"', refused.stderr)
        self.assertEqual(0, self.commit("Add a", b_h="1").returncode)


if __name__ == "__main__":
    unittest.main()
