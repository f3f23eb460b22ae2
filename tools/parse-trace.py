#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""graftrace parse-trace, by the name that the script of Nanos has. Builds graftrace if it is not there."""

import os
import subprocess
import sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
graftrace = root / os.environ.get("BUILD", "build") / "cli" / "graftrace"
if not graftrace.exists():
    subprocess.run(["make", "-s", "-C", root], check=True, stdout=sys.stderr)
os.execv(graftrace, [graftrace, "parse-trace", *sys.argv[1:]])
