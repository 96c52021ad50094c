#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints lines of comments and documents that are hard to read, and checks the length of two documents.

usage: prose.py [--base COMMIT] [FILE...]
  FILE...         checks whole files; without files, the lines added since COMMIT
  --base COMMIT   the newest commit that is at least 24 hours older than HEAD by default

Lines are reported as warnings. The exit status is 1 if a document of LENGTHS is too long, else 0.
"""

import argparse
import ast
import collections
import io
import pathlib
import re
import sys
import tokenize

from history import base_commit, git

ROOT = pathlib.Path(__file__).resolve().parents[2]

# {document: maximum number of lines}.
LENGTHS = {"README.md": 150, "docs/architecture.md": 150}

# Generated documents, and files of other projects.
EXCLUDED = re.compile(r"(docs/(performance|studies)/|docs/performance\.md|docs/kernel-needs\.md|proto/google/|proto/grpc/)")

OPENER = re.compile(r"(of|what|as|who|whose|where|so that|how)\b", re.I)

# (pattern, better words).
WORDS = [
    (r"such a one", "name the thing"),
    (r"as one, too", "name the thing"),
    (r"whoever", "the client, the caller"),
    (r"that of (?:the|a)", "name the thing"),
    (r"in company|together with others", "in a batch"),
    (r"outlooks?", "estimate"),
    (r"wish(?:es)?", "request, choice"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"departures?", "removal, eviction"),
    (r"(?:take|put)s? (?:it |them )?out", "remove, unpack"),
    (r"widen(?:s|ed|ing)?", "convert to float64, refactor in float64"),
    (r"(?:the|this|its) house", "architecture"),
    (r"(?:a|its own) room|rooms", "module, folder"),
    (r"(?:the|outside) wall(?! (?:clock|time))", "public interface"),
    (r"how far (?:it|they) (?:is|are)", "progress"),
    (r"small calls", "small requests"),
    (r"stays? sparse", "is factored as a sparse matrix"),
    (r"made larger", "perturbed"),
    (r"(?:(?:a|the|each) factor|factors) in (?:a )?lower precision", "low-precision factor"),
    (r"anew", "again"),
    (r"likewise", "also, the same"),
    (r"talks? to", "calls, connects to"),
    (r"tells?|told|says?|said", "reports, returns, states"),
    (r"knows?|wants?|thinks?|believes?", "stores, requires, estimates"),
]
# Verbs for persons that are checked only in comments, because documents use them for users.
PERSONS = WORDS[-1:]
WORD = re.compile("|".join(rf"(?P<w{i}>\b(?:{pattern})\b)" for i, (pattern, _) in enumerate(WORDS)), re.I)

SLASHES = re.compile(r"(?:^|[\s;{}(),])//+[!/<]*\s?(.*)$")
HASH = re.compile(r"(?:^\s*|\s\s)#(?!!)\s?(.*)$")
SLASH_SUFFIXES = {".h", ".c", ".cc", ".cu", ".cuh", ".proto"}
HASH_SUFFIXES = {".sh", ".cmake", ".txt", ".toml", ".yml"}

Finding = collections.namedtuple("Finding", "path line rule advice text")


def marked_comments(text, pattern):
    """Yields (line, begins, words) for each line of a comment. `begins` is true for the first line of a paragraph, and for
    a comment that follows code on its line.
    """
    continues = False
    for number, line in enumerate(text.splitlines(), 1):
        match = pattern.search(line)
        if not match:
            continues = False
            continue
        words = match[1].strip()
        yield number, not continues or bool(line[:match.start()].strip()), words
        continues = bool(words) and not words.startswith("SPDX-")


def python_comments(text):
    lines = {token.start[0]: (token.string[1:].strip(), bool(token.line[:token.start[1]].strip()))
             for token in tokenize.generate_tokens(io.StringIO(text).readline)
             if token.type == tokenize.COMMENT and not token.string.startswith("#!")}
    for number, (words, follows_code) in sorted(lines.items()):
        before, _ = lines.get(number - 1, ("", False))
        yield number, follows_code or not before or before.startswith("SPDX-"), words
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(node):
            first = node.body[0]
            for offset, line in enumerate(first.value.value.splitlines()):
                yield first.lineno + offset, offset == 0, line.strip()


def prose(text):
    """Yields the lines of a Markdown document outside code. No line begins a paragraph, because headings and questions
    may begin with any word.
    """
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            yield number, False, re.sub(r"`[^`]*`|\]\([^)]*\)", "", line)


def comments(path, text):
    suffix = pathlib.PurePath(path).suffix
    if suffix in SLASH_SUFFIXES:
        return marked_comments(text, SLASHES)
    if suffix == ".py":
        try:
            return list(python_comments(text))
        except (SyntaxError, tokenize.TokenError):  # the file has syntax of a newer Python
            return marked_comments(text, HASH)
    if suffix in HASH_SUFFIXES:
        return marked_comments(text, HASH)
    return prose(text) if suffix == ".md" else ()


def check(path, text):
    """Returns the findings in a file, sorted by line."""
    found = []
    for number, begins, words in comments(path, text):
        opener = OPENER.match(words) if begins else None
        if opener:
            found.append(Finding(path, number, f"opens with {opener[0]}", "start with the subject or the verb", words))
        for match in WORD.finditer(re.sub(r"`[^`]*`|\"[^\"]*\"", "", words)):
            word = WORDS[int(match.lastgroup[1:])]
            if word not in PERSONS or not path.endswith(".md"):
                found.append(Finding(path, number, match[0].lower(), word[1], words))
    return sorted(found)


def added_lines(base, cwd=ROOT):
    """Returns {path: numbers of the lines added between `base` and the working tree}."""
    added = collections.defaultdict(set)
    path = None
    for line in git("diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-renames", base, cwd=cwd).splitlines():
        if line.startswith("+++ "):
            path = line[6:] if line.startswith("+++ b/") else None
        elif path and (match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)):
            begin, count = int(match[1]), int(match[2] or 1)
            added[path].update(range(begin, begin + count))
    return added


def check_added(base, root=ROOT):
    return [finding
            for path, lines in sorted(added_lines(base, root).items())
            if not EXCLUDED.match(path) and (root / path).is_file()
            for finding in check(path, (root / path).read_text(encoding="utf-8", errors="replace"))
            if finding.line in lines]


def too_long(root=ROOT):
    """Returns a message for each document with more lines than LENGTHS allows."""
    messages = []
    for name, limit in LENGTHS.items():
        lines = len((root / name).read_text(encoding="utf-8").splitlines())
        if lines > limit:
            messages.append(f"{name} has {lines} lines; the limit is {limit}. Move details to pages in docs/.")
    return messages


def main():
    parser = argparse.ArgumentParser(usage="prose.py [--base COMMIT] [FILE...]", add_help=False)
    parser.add_argument("--base")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.files:
        findings = [finding for path in arguments.files
                    for finding in check(str(path), path.read_text(encoding="utf-8", errors="replace"))]
    else:
        findings = check_added(arguments.base or base_commit(ROOT))
    for finding in findings:
        print(f"{finding.path}:{finding.line}: \"{finding.rule}\": {finding.advice}\n    {finding.text}")
    if findings:
        print(f"WARNING: {len(findings)} phrases to rewrite, in {len({finding.path for finding in findings})} files")
    else:
        print("no phrases to rewrite")
    messages = too_long()
    print("\n".join(f"ERROR: {message}" for message in messages), end="\n" if messages else "")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
