# SPDX-License-Identifier: MIT
"""The files of the tree, as the checks see them: tracked, or new and not ignored."""

import os
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["GRAFTRACE_BUILD"])


def files(*suffixes):
    """Paths relative to the root, of regular files that end in one of `suffixes` (all if none)."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True).stdout
    paths = [Path(name) for name in listed.split("\0") if name]
    return sorted(path for path in paths
                  if (ROOT / path).is_file() and (not suffixes or path.name.endswith(suffixes)))


def text(path):
    """A file's text, or None if it is no text."""
    data = (ROOT / path).read_bytes()
    if b"\0" in data:
        return None
    return data.decode("utf-8", "replace")
