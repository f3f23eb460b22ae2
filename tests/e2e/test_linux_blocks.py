# SPDX-License-Identifier: MIT
"""Who reads a disk, and what it waits for: Debian's kernel in QEMU with a RAID of two disks, recorded
by trace-cmd and by graftrace. The functions of modules, kprobes, a threshold, a module and a CPU that
go away, symbols that are hidden, and tracefs that is taken away."""

import collections
import csv
import io
import re
import shutil
import subprocess

import pytest

import linux_guest
from conftest import Graftrace
from linux import BOOT_LIMIT_S, rows_of

LIMIT_S = 4 * BOOT_LIMIT_S
pytestmark = pytest.mark.timeout(LIMIT_S + BOOT_LIMIT_S)

RAID = """
mkdir -p /dev/shm /run /etc /mnt; mount -t tmpfs tmpfs /dev/shm
T=/sys/kernel/tracing
insmod /modules/md-mod.ko; insmod /modules/raid0.ko
mdadm --create /dev/md0 --run --level=0 --raid-devices=2 /dev/nvme1n1 /dev/nvme2n1 > mdadm.out 2>&1
H="{hasher} -d /dev/md0 -b 65536 -t 2"
cold() {{ echo 3 > /proc/sys/vm/drop_caches; }}
"""

SCRIPT = RAID + """
cold; trace-cmd record -q -p function_graph -g __x64_sys_pread64 -o pread.dat $H -n 4 > /dev/null 2>&1
cold; graftrace record --kernel=graph -g k:__x64_sys_pread64 -o pread.data $H -n 4 > pread.out 2>&1
echo 'r:md_probe md_handle_request ret=$retval' >> $T/kprobe_events
cold; graftrace record --kernel=graph -g k:md_submit_bio -e md_probe -o md.data $H -n 4 > md.out 2>&1
cold; graftrace record --kernel=graph --threshold k:500us -o slow.data $H -n 4 > slow.out 2>&1
/bin/busybox mke2fs -F /dev/md0 > mke2fs.out 2>&1; mount -t ext4 /dev/md0 /mnt
dd if=/dev/zero of=/mnt/file bs=64k count=4 2> /dev/null; sync; umount /mnt; mount -t ext4 /dev/md0 /mnt
cold; graftrace record --kernel=graph -a -g k:ksys_read -e block -e sched --lib libc -o tree.data {reader} /mnt/file > tree.out 2>&1
umount /mnt; cold
graftrace record --kernel=graph -l k:raid0_make_request -o unload.data sh -c 'dd if=/dev/md0 of=/dev/null bs=64k count=2; mdadm --stop /dev/md0; rmmod raid0' > unload.out 2>&1
grep -c raid0 /proc/modules > modules.out
echo 2 > /proc/sys/kernel/kptr_restrict
graftrace record --kernel=graph -g k:vfs_read -o hidden.data cat /proc/modules > hidden.out 2>&1
echo 0 > /proc/sys/kernel/kptr_restrict
graftrace record --kernel=events -e syscalls -o taken.data sh -c 'umount -l /sys/kernel/tracing; cat /proc/modules' > taken.out 2>&1
echo $? > taken.code
"""

# On two CPUs, of which one goes away while it is recorded.
SCRIPT_2 = RAID + """
cold; graftrace record --kernel=events -e sched -e block -o wait.data $H -n 4 > wait.out 2>&1 &
sleep 1; echo 0 > /sys/devices/system/cpu/cpu1/online; sleep 1; echo 1 > /sys/devices/system/cpu/cpu1/online
wait $!; echo $? > wait.code
"""


@pytest.fixture(scope="module")
def booted(tmp_path_factory, compile):
    hasher = compile("block_hasher.c", "-O1", "-pthread")
    reader = compile("read_file.c", "-O1")

    def boot(name, script, cpus):
        directory = tmp_path_factory.mktemp(name)
        linux_guest.run(directory, script.format(hasher=hasher.name, reader=reader.name),
                        ["trace-cmd", "mdadm", Graftrace(directory).path, hasher, reader],
                        modules=["md-mod", "raid0"], disks=[32 << 20, 32 << 20], cpus=cpus, limit_s=LIMIT_S)
        return directory

    return boot


@pytest.fixture(scope="module")
def files(booted):
    return booted("linux_blocks", SCRIPT, 1)


@pytest.fixture(scope="module")
def files_of_two(booted):
    return booted("linux_blocks_two", SCRIPT_2, 2)


def test_the_reads_of_all_threads_are_those_that_trace_cmd_sees(graftrace, files):
    called = []
    for name in ("pread.dat", "pread.data"):
        rows, _ = rows_of(graftrace, files / name)
        below = collections.defaultdict(set)
        for row in rows.values():
            if row["parent"] and rows[row["parent"]]["function"] == "__x64_sys_pread64":
                below[row["parent"]].add(row["function"])
        called.append(below)
    theirs, ours = called
    # eight, and those of the program's loader
    assert len(theirs) == len(ours) >= 8
    # an interrupt may fall into one
    common = set(map(frozenset, theirs.values()))
    assert sum(frozenset(names) in common for names in ours.values()) >= len(ours) - 2


def test_each_read_stands_in_the_threads_own_call(graftrace, files):
    rows, callers = rows_of(graftrace, files / "pread.data")
    reads = [callers(row) for row in rows.values()
             if row["function"] == "__x64_sys_pread64" and callers(row)]
    assert len(reads) == 8
    assert all(names[:2] == ["read_block", "worker"] for names in reads), reads


def test_functions_of_modules_have_their_module(graftrace, files):
    rows, _ = rows_of(graftrace, files / "md.data")
    objects = {row["function"]: row["object"] for row in rows.values()}
    assert objects["md_submit_bio"] == objects["md_handle_request"] == "[md_mod]"
    assert objects["raid0_make_request"] == "[raid0]"
    assert objects["submit_bio_noacct"] == "[kernel]"
    shown = graftrace("show", "--no-pager", "--context", "kernel", files / "md.data").stdout
    assert re.search(r"\|  +raid0_make_request\(\) \{ /\* \[raid0\] \*/$", shown, re.M)
    assert re.search(r"\|  +read_block\(\) \{$", shown, re.M)


def test_a_kprobe_is_seen_once_in_each_call(graftrace, files):
    rows, _ = rows_of(graftrace, files / "md.data")
    calls = sum(row["function"] == "md_handle_request" for row in rows.values())
    shown = graftrace("show", "--no-pager", files / "md.data").stdout
    assert shown.count("md_probe: (") == calls > 0
    # as the kernel's own text has it, module and all
    assert len(re.findall(r"md_probe: \(\w+\+0x[0-9a-f]+(/0x[0-9a-f]+)?( \[\w+\])? "
                          r"<- md_handle_request \[md_mod\]\) ret=", shown)) == calls


def test_a_threshold_leaves_slow_calls_only(graftrace, files):
    def rows(*words):
        out = graftrace("report", "--no-pager", "--format", "csv", *words, files / "slow.data").stdout
        return {row["function"]: row for row in csv.DictReader(io.StringIO(out))}

    kernels = rows("--kernel")
    assert "schedule" in kernels and "vfs_read" in kernels
    assert all(int(row["minimum_ns"]) >= 500_000 for row in kernels.values()
               if row["calls"] != row["not_returned"])
    assert rows("--user")["read_block"]["calls"] == "8"


def test_one_tree_leads_from_main_to_the_disk(graftrace, files):
    assert "4096" in (files / "tree.out").read_text()
    rows, callers = rows_of(graftrace, files / "tree.data")
    issues = [callers(row) for row in rows.values()
              if row["function"].startswith("nvme_") and "load" in callers(row)]
    wanted = ["main", "load", "read", "ksys_read", "vfs_read", "ext4_file_read_iter", "filemap_read"]
    chains = [[name for name in reversed(names) if name in wanted] for names in issues]
    assert wanted in chains, issues
    assert any("raid0_make_request" in callers(row) and "read" in callers(row)
               for row in rows.values())
    shown = graftrace("show", "--no-pager", files / "tree.data").stdout
    read = re.search(r"\|        read\(\) \{\n.*?\|        \}\n", shown, re.S)[0]
    assert "block_rq_issue" in read and "block_rq_complete" in shown
    # a task that slept says until when; the disk may have been quicker
    if re.search(r"sched_switch: prev_comm=\S+ prev_pid=\d+ prev_prio=\d+ prev_state=D", read):
        assert re.search(r"off_cpu: slept [\d.]+ us until an interrupt in \S+ woke it", read)


def test_who_waited_for_the_disk_is_summed_up(graftrace, files_of_two):
    files = files_of_two
    assert (files / "wait.code").read_text() == "0\n"
    out = graftrace("report", "--no-pager", "--rests", "--format", "csv", files / "wait.data").stdout
    rows = list(csv.DictReader(io.StringIO(out)))
    assert any("interrupt" in row["woken_by"] and int(row["slept_ns"]) > 0 for row in rows), out


def test_a_module_that_was_unloaded_is_still_named(graftrace, files):
    assert (files / "modules.out").read_text() == "0\n"
    rows, _ = rows_of(graftrace, files / "unload.data")
    assert ("raid0_make_request", "[raid0]") in {
        (row["function"], row["object"]) for row in rows.values()}


def test_hidden_symbols_are_told(graftrace, files):
    assert "kptr_restrict" in (files / "hidden.out").read_text()
    rows, _ = rows_of(graftrace, files / "hidden.data")
    assert any(re.fullmatch(r"0x[0-9a-f]+", row["function"]) and row["object"] == "[kernel]"
               for row in rows.values())


def test_how_it_was_recorded_is_told(graftrace, files):
    assert "top of tracefs only" in (files / "pread.out").read_text()
    said = graftrace("info", files / "pread.data").stdout
    assert re.search(r"kernel-clock=x86-tsc: the program's own, to \d+ ns \(measured by \d+ markers\)",
                     said)
    assert "kernel-lacks=funcgraph-retval (no return values)" in said
    assert "kernel=functions and events, at the top of tracefs" in said


def test_tracefs_that_is_taken_away_costs_no_more_than_the_kernels_part(graftrace, files):
    assert (files / "taken.code").read_text() == "0\n", (files / "taken.out").read_text()
    assert graftrace("show", "--no-pager", files / "taken.data").returncode == 0


def test_what_is_exported_as_ctf_has_both_with_their_names(graftrace, files):
    graftrace("export", "-q", "--to", "ctf", "-o", "it.ctf", files / "pread.data")
    text = subprocess.run([shutil.which("babeltrace2"), "it.ctf"], cwd=graftrace.directory, check=True,
                          stdout=subprocess.PIPE, text=True, timeout=120).stdout
    rows, _ = rows_of(graftrace, files / "pread.data")
    assert text.count("func_entry") == len(rows)
    assert "vfs_read" in text or any(
        "vfs_read" in path.read_text(errors="replace")
        for path in (graftrace.directory / "it.ctf").rglob("*") if path.is_file())
