# SPDX-License-Identifier: MIT
"""Debian's kernel in QEMU with programs of this machine: one boot runs a shell's script as root and
gives back the files that it left in its working directory."""

import os
import pathlib
import shutil
import subprocess
import tarfile

from conftest import BUILD, ROOT
from linux import BOOT_LIMIT_S, archive

DISK_BYTES = 256 << 20

INIT = """#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mkdir -p /proc /sys /tmp /results
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
mount -t devtmpfs dev /dev
cd /results
{script}
tar cf /dev/nvme0n1 .
sync
poweroff -f
"""


def libraries_of(program):
    listed = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                            text=True, check=False).stdout
    return {word for line in listed.splitlines() for word in line.split() if word.startswith("/")}


def initramfs(script, programs, modules=()):
    """Of a shell's script and programs (paths; they stand in /bin), with their libraries, and modules
    of the kernel (paths; they stand in /modules)."""
    files, made = [("dev", 0o40755, b"", (0, 0)), ("dev/console", 0o20600, b"", (5, 1)),
                   ("init", 0o100755, INIT.format(script=script).encode(), (0, 0))], {"dev"}

    def add(name, source):
        parents = name.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            parent = "/".join(parents[:depth])
            if parent not in made:
                made.add(parent)
                files.append((parent, 0o40755, b"", (0, 0)))
        with open(source, "rb") as file:
            files.append((name, 0o100755, file.read(), (0, 0)))

    for program in ["busybox", *programs]:
        path = shutil.which(str(program))
        add("bin/" + os.path.basename(path), path)
    for module in modules:
        add("modules/" + os.path.basename(module), module)
    for library in sorted(set().union(*map(libraries_of, map(shutil.which, map(str, programs))))):
        add(library.lstrip("/"), os.path.realpath(library))
    return archive(files)


def fetch_kernel():
    """The kernel's image; below its directory's parent are modules."""
    return subprocess.run([ROOT / "tools" / "fetch_kernel", BUILD / "linux"], text=True,
                          stdout=subprocess.PIPE, timeout=BOOT_LIMIT_S, check=True).stdout.strip()


def modules_of(image, names):
    """Paths of the kernel's modules of these names."""
    below = pathlib.Path(image).parent.parent / "lib" / "modules"
    return [next(below.rglob(f"{name}.ko")) for name in names]


def run(directory, script, programs, modules=(), disks=(), cpus=1, limit_s=2 * BOOT_LIMIT_S):
    """Runs the script; the files that it left come into `directory`. The console's text. disks: bytes
    of each, empty; the first is /dev/nvme1n1. modules: names, for insmod /modules/NAME.ko. cpus: with more
    than one let no script trace functions: on a busy machine the guest may stand still."""
    image = fetch_kernel()
    (directory / "initramfs").write_bytes(initramfs(script, programs, modules_of(image, modules)))
    more = []
    for number, size in enumerate(disks, 1):
        with open(directory / f"disk{number}", "wb") as file:
            file.truncate(size)
        more += ["-drive", f"file={directory}/disk{number},if=none,id=disk{number},format=raw",
                 "-device", f"nvme,drive=disk{number},serial=disk{number}"]
    disk, console = directory / "disk", directory / "console"
    with open(disk, "wb") as file:
        file.truncate(DISK_BYTES)
    subprocess.run(
        ["qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "512M", "-smp", str(cpus),
         "-nodefaults", "-display", "none", "-no-reboot", "-serial", f"file:{console}",
         "-drive", f"file={disk},if=none,id=disk,format=raw",
         "-device", "nvme,drive=disk,serial=results", *more,
         # The guest's time is that of its instructions: where functions are traced and the machine is busy,
         # one tick's work would otherwise take longer than a tick, and nothing else would run. QEMU's
         # second CPU does not start then.
         *(["-icount", "shift=2,sleep=on"] if cpus == 1 else []),
         "-kernel", image, "-initrd", directory / "initramfs",
         # a busy machine's timer ticks come late; that is no broken one
         "-append", "console=ttyS0 quiet panic=-1 no_timer_check"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        timeout=limit_s, check=True)
    said = console.read_text(encoding="utf-8", errors="replace")
    try:
        with tarfile.open(disk) as results:
            results.extractall(directory)
    except tarfile.TarError as error:
        raise AssertionError(f"the guest left no files: {said[-2000:]}") from error
    finally:
        for file in [disk, *directory.glob("disk[0-9]")]:
            file.unlink()
    return said
