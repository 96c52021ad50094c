#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the subject of a commit message.

usage: commit_subject.py FILE      FILE is the message, as for git's hook commit-msg
"""

import pathlib
import re
import sys

LENGTH = 72

# First words that do not describe a change.
REFUSED = {"Give", "Have", "Keep", "Know", "Let", "Mend", "Say", "Take", "Tell",
           "What", "How", "Where", "When", "Of", "As", "The", "A", "An", "More", "Some", "Also", "Misc", "Minor", "WIP"}
# Other forms of common first verbs.
NOT_IMPERATIVE = re.compile(
    r"(Add|Allow|Avoid|Bound|Build|Change|Check|Correct|Document|Drop|Fix|Handle|Implement|Improve|Measure|Merg|Mov|Nam|Refactor|Refus|"
    r"Remov|Renam|Replac|Report|Rewrit|Show|Simplify|Split|Support|Test|Updat|Us|Writ)(e?s|e?d|ing)$")


def problems(subject):
    """Returns a message for each error in `subject`, with a correction."""
    if re.match(r"(Merge |Revert \"|fixup! |squash! |amend! )", subject):
        return []
    found = []
    first = re.match(r"\S*", subject)[0]
    if not subject:
        return ["the subject is empty. Write what changed, in the imperative."]
    if len(subject) > LENGTH:
        found.append(f"the subject has {len(subject)} characters; the limit is {LENGTH}. Move details to the body.")
    if first in REFUSED:
        found.append(f"the subject begins with \"{first}\". Begin with what changed: \"Add\", \"Fix\", \"Remove\", \"Document\".")
    elif NOT_IMPERATIVE.match(first):
        found.append(f"the subject begins with \"{first}\". Use the imperative: \"Add\", not \"Added\", \"Adds\" or \"Adding\".")
    elif not first[0].isupper():
        found.append(f"the subject begins with \"{first}\". Begin with a capital letter.")
    if subject.endswith("."):
        found.append("the subject ends with a period. Remove it.")
    return found


def subject_of(message):
    """Returns the first line of `message` that is not a comment of git."""
    lines = [line.strip() for line in message.splitlines() if not line.startswith("#")]
    return next((line for line in lines if line), "")


if __name__ == "__main__":
    subject = subject_of(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8", errors="replace"))
    found = problems(subject)
    for problem in found:
        print(f"commit refused: {problem}", file=sys.stderr)
    if found:
        print(f"    {subject}\nCONTRIBUTING.md describes commits.", file=sys.stderr)
    sys.exit(1 if found else 0)
