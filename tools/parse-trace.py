#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""graftrace parse-trace and graftrace runtime-breakdown, by the names that the scripts of Nanos have
(runtime-breakdown.py is a link to this). Builds graftrace if it is not there."""

import os
import subprocess
import sys
from pathlib import Path

command = Path(sys.argv[0]).stem
root = Path(__file__).resolve().parent.parent
build = Path(os.environ.get("BUILD", "build"))
graftrace = root / build / "cli" / "graftrace"
if not graftrace.exists():
    print(f"tools/{command}.py: building graftrace, once", file=sys.stderr)
    made = subprocess.run(["make", "-s", "-C", root, f"BUILD={build}", "graftrace"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if made.returncode != 0:
        sys.exit(made.stdout.decode("utf-8", "replace"))
os.execv(graftrace, [graftrace, command, *sys.argv[1:]])
