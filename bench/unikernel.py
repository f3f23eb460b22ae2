# SPDX-License-Identifier: MIT
"""Instructions a traced call costs inside the unikernel: QEMU counts them (-icount), and the guest's clock
with them. Prints rows for bench/results.md.

    bench/unikernel.py [BUILD]
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def ticks(build, **options):
    """Ticks of a call at first, and at last."""
    environment = {**os.environ, "BUILD": build, "TARGET": "calls", "CPUS": "1", "BUFFER": "2M",
                   "QEMU_ARGS": "-icount shift=0,sleep=off", **options}
    done = subprocess.run([ROOT / "tools" / "unikernel", "run"], cwd=ROOT, env=environment,
                          capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    found = re.search(r"calls: (\d+) ticks for (\d+) calls at first, (\d+) at last", done.stdout)
    if not found:
        sys.exit(f"bench/unikernel.py: the target said nothing of calls\n{done.stdout}{done.stderr}")
    return int(found[1]) / int(found[2]), int(found[3]) / int(found[2])


def main():
    build = sys.argv[1] if len(sys.argv) > 1 else "build"
    plain, _ = ticks(build, TRACE="")
    traced, full = ticks(build, TRACE="ftrace")
    print(f"| instructions a traced call in the unikernel, entry and return | {traced - plain:.1f} | <= 64 |")
    print(f"| ... with a full ring | {full - plain:.1f} | <= 12 |")


if __name__ == "__main__":
    main()
