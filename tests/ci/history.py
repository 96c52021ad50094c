# SPDX-License-Identifier: Apache-2.0
"""Reads the repository's history for the scripts in this folder."""

import datetime
import subprocess


def git(*arguments, cwd=None):
    return subprocess.run(["git", *arguments], cwd=cwd, capture_output=True, text=True, check=True).stdout


def day_before_head(cwd=None):
    """Returns the time 24 hours before the commit of HEAD, in ISO format."""
    head = datetime.datetime.fromisoformat(git("log", "-1", "--format=%cI", cwd=cwd).strip())
    return (head - datetime.timedelta(days=1)).isoformat()


def base_commit(cwd=None):
    """Returns the newest commit that is at least 24 hours older than HEAD, or the first commit if there is none."""
    older = git("rev-list", "-1", f"--before={day_before_head(cwd)}", "HEAD", cwd=cwd).strip()
    return older or git("rev-list", "--max-parents=0", "HEAD", cwd=cwd).split()[-1]
