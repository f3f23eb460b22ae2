# SPDX-License-Identifier: MIT
"""The price of a traced call in memory, for each way in, beside the floor and the peers.

The floor is the same call with two bare clock reads in it. Of every figure the plain program's
own time is taken off: the ratio is of what tracing adds. The times are the thread's CPU time, so
that what else the machine does is left out.
"""

import contextlib
import os
import signal
import time
from pathlib import Path

from measure import (SCRATCH, WAYS, Failed, compile_c, in_turns, main, median, ratio, record, run,
                     say, scratch_file, spread)

ARGUMENTS = ["30", "5", "1"]        # 19 million calls
FEWER = ["26", "5", "1"]            # 2.7 million calls, for the peers that are many times slower


def ns(output):
    """ns of CPU time a call, from what programs/fib.c prints."""
    return float(output.split()[1])


def plain(program, arguments=None, **how):
    return lambda: ns(run([program, *(arguments or ARGUMENTS)], **how)[0])


def in_memory(program, arguments=None, options=()):
    """Recording as a flight recorder: nothing leaves memory while the program runs."""
    data = SCRATCH / "call_cost.data"
    return lambda: ns(record(data, [program, *(arguments or ARGUMENTS)], "--overwrite",
                             *options)[0])


def ways_in():
    bare = compile_c("fib.c", "fib_plain")
    floor = compile_c("fib.c", "fib_floor", "-DTWO_CLOCK_READS")
    variants = {"plain": plain(bare), "floor": plain(floor)}
    for way, flags in WAYS.items():
        variants[way] = in_memory(compile_c("fib.c", f"fib_{way}", *flags),
                                  options=[] if flags else ["--unprepared"])
    figures = in_turns(variants)
    for way, flags in WAYS.items():
        say(f"entry + return, in memory, ÷ two bare `rdtsc`: {' '.join(flags) or 'unprepared'}",
            "≤ 1.10" if flags else "≤ 1.20", ratio(figures, way, "floor", less="plain"), "",
            f"ns a call: traced {spread(figures, way)}, floor {spread(figures, 'floor')}, "
            f"plain {spread(figures, 'plain')}")


@contextlib.contextmanager
def lttng_session(output, events="lttng_ust_cyg_profile_fast:*"):
    """A private LTTng session daemon with one session for these events; ended by its id."""
    home = scratch_file("lttng-home")
    home.mkdir()
    environment = {"LTTNG_HOME": str(home), "HOME": str(home)}
    pid_file = home / "pid"
    run(["lttng-sessiond", "--daemonize", "--no-kernel", f"--pidfile={pid_file}"],
        env=environment, timeout=30)
    try:
        # Large enough that nothing is thrown away: a lost event costs less than a kept one.
        for command in (["create", "bench", f"--output={output}"],
                        ["enable-channel", "-u", "-s", "bench", "--subbuf-size=16M",
                         "--num-subbuf=8", "c"],
                        ["enable-event", "-u", "-s", "bench", "-c", "c",
                         events],
                        ["start", "bench"]):
            run(["lttng", *command], env=environment, timeout=30)
        yield environment
        run(["lttng", "destroy", "bench"], env=environment, timeout=60)
    finally:
        pid = int(Path(pid_file).read_text())
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                break
            time.sleep(0.1)


def peers():
    bare = compile_c("fib.c", "fib_plain")
    floor = compile_c("fib.c", "fib_floor", "-DTWO_CLOCK_READS")
    gprof = compile_c("fib.c", "fib_pg", "-pg")
    cyg = compile_c("fib.c", "fib_cyg", "-finstrument-functions")
    patchable = compile_c("fib.c", "fib_patchable", *WAYS["patchable"])
    xray = compile_c("fib.c", "fib_xray", "-fxray-instrument", "-fxray-instruction-threshold=1",
                     compiler="clang")
    xray_environment = {
        "XRAY_OPTIONS": "patch_premain=true xray_mode=xray-fdr verbosity=0 "
                        f"xray_logfile_base={SCRATCH}/xray.",
        "XRAY_FDR_OPTIONS": "func_duration_threshold_us=0",
    }
    lttng_output = scratch_file("lttng-trace")
    with lttng_session(lttng_output) as environment:
        figures = in_turns({
            "plain": plain(bare, FEWER),
            "floor": plain(floor, FEWER),
            "graftrace": in_memory(patchable, FEWER),
            "-pg alone": plain(gprof, FEWER),
            "XRay": plain(xray, FEWER, env=xray_environment),
            "LTTng": plain(cyg, FEWER, env={**environment,
                                            "LD_PRELOAD": "liblttng-ust-cyg-profile-fast.so.1"}),
        })
    if not any(lttng_output.rglob("c_*")):
        raise Failed("LTTng wrote no trace")
    # Where a virtual machine hides the clock's frequency XRay writes no log, but records.
    if median(figures["XRay"]) < 2 * median(figures["plain"]):
        raise Failed("XRay did not patch its sleds in")
    for name, how in (("-pg alone", "gprof's own counting, no time stamps"),
                      ("XRay", "flight data recorder, in memory"),
                      ("LTTng", "cyg-profile-fast, written to disk as it goes")):
        say(f"graftrace in memory ÷ {name}", "",
            ratio(figures, "graftrace", name, less="plain"), "",
            f"{how}; ns a call: {name} {spread(figures, name)}, graftrace "
            f"{spread(figures, 'graftrace')}, floor {spread(figures, 'floor')}, plain "
            f"{median(figures['plain']):.2f}")


if __name__ == "__main__":
    main(ways_in, peers)
