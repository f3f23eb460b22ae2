# SPDX-License-Identifier: MIT
"""`make install` puts everything in its place, and what is installed works from there."""

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

import tree


def prefix():
    """Where the build under test is to be installed."""
    options = json.loads(subprocess.run(
        ["meson", "introspect", "--buildoptions", tree.BUILD], check=True, capture_output=True,
        text=True).stdout)
    return next(option["value"] for option in options if option["name"] == "prefix")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The prefix of a staged installation of the build under test."""
    stage = tmp_path_factory.mktemp("stage")
    subprocess.run(["meson", "install", "-C", tree.BUILD, "--no-rebuild", "--destdir", stage],
                   check=True, capture_output=True)
    return stage / Path(prefix()).relative_to("/")


def test_the_headers_are_installed_and_compile_alone(installed, tmp_path):
    there = sorted(path.name for path in (installed / "include" / "graftrace").iterdir())
    assert there == sorted(path.name for path in (tree.ROOT / "include" / "graftrace").glob("*.h"))
    # iso646.h makes macros of words like `not`, which C++ reads so by itself.
    for compiler, suffix in [(["gcc", "-std=c11"], "c"), (["clang", "-std=c11"], "c"),
                             (["g++", "-std=c++17"], "cc"), (["clang++", "-std=c++17"], "cc")]:
        for name in there:
            source = tmp_path / f"one.{suffix}"
            source.write_text(f"#include <iso646.h>\n#include <graftrace/{name}>\n"
                              f"#include <graftrace/{name}>\nextern int for_headers_of_macros_alone;\n")
            done = subprocess.run(
                [*compiler, "-pedantic", "-Wall", "-Wextra", "-Werror", "-fsyntax-only",
                 f"-I{installed / 'include'}", source], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr


def test_a_kernel_can_be_linked_with_what_is_installed(installed, tmp_path):
    """The library needs what core/record/port.h lists and the linker script's symbols, nothing else."""
    library = next(installed.glob("lib/**/libgraftrace-core.a"))
    headers = installed / "include" / "graftrace-core"
    (tmp_path / "kernel.c").write_text(
        '#include "core/record/kernel.h"\n#include "core/record/port.h"\n'
        '#include "core/record/sites.h"\n#include "core/kernel/kernel_control.h"\n'
        '#include "core/http/http_server.h"\n'
        "void use(struct gt_context *next) { gt_kernel_switch(next, 0); }\n"
        "struct graftrace_arena *ring(void) { return gt_port_arena(); }\n")
    described_by = {**os.environ, "PKG_CONFIG_PATH": str(library.parent / "pkgconfig"),
                    "PKG_CONFIG_SYSROOT_DIR": str(installed).removesuffix(str(prefix()))}

    def package(what):
        return subprocess.run(["pkg-config", what, "graftrace-core"], env=described_by, check=True,
                              capture_output=True, text=True).stdout.split()
    subprocess.run(["gcc", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-ffreestanding", "-c",
                    *package("--cflags"), "kernel.c"], cwd=tmp_path, check=True)
    subprocess.run(["ld", "-r", "kernel.o", "--whole-archive", *package("--libs"), "-o", "linked.o"],
                   cwd=tmp_path, check=True)
    listed = subprocess.run(["nm", "-u", "--format=posix", "linked.o"], cwd=tmp_path, check=True,
                            capture_output=True, text=True).stdout
    wanted = {line.split()[0] for line in listed.splitlines() if line.strip()}
    described = (headers / "core" / "record" / "port.h").read_text()
    script = {"gt_recorder_text_start", "gt_recorder_text_end", "_GLOBAL_OFFSET_TABLE_"}
    strange = [name for name in wanted - script if name + "(" not in described]
    assert not strange and "gt_port_text_write" in wanted and "gt_port_arena" not in wanted


def test_the_kernels_library_has_all_that_arch_h_declares(installed):
    library = next(installed.glob("lib/**/libgraftrace-core.a"))
    header = (installed / "include" / "graftrace-core" / "core" / "record" / "arch.h").read_text()
    code = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    declared = set(re.findall(r"\b(gt_arch_\w+)(?=\(|\[|;)", code))
    listed = subprocess.run(["nm", "--defined-only", "--format=posix", library], check=True,
                            capture_output=True, text=True).stdout
    defined = {line.split()[0] for line in listed.splitlines() if len(line.split()) > 1
               and line.split()[1] in "TDBR"}
    assert "gt_arch_block" in declared and not declared - defined


def test_the_kernels_library_has_no_floating_point(installed):
    library = next(installed.glob("lib/**/libgraftrace-core.a"))
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], check=True,
                          capture_output=True, text=True).stdout
    assert len(code) > 100000
    assert not re.findall(r".*%(?:[xyz]mm|mm|st)\d*\b.*", code)


def test_man_pages_and_completion_are_installed(installed):
    pages = {path.name for path in (installed / "share" / "man" / "man1").iterdir()}
    assert pages == {path.name for path in (tree.ROOT / "doc" / "man").glob("*.1")}
    assert (installed / "share" / "bash-completion" / "completions" / "graftrace").is_file()


def test_the_installed_command_records_a_program(installed, tmp_path):
    (tmp_path / "one.c").write_text(
        "int one(int x) { return x + 1; }\nint main(int c, char **v) { return one(c) - 2; }\n")
    subprocess.run(["gcc", "-O0", "-fpatchable-function-entry=5", "one.c", "-o", "one"],
                   cwd=tmp_path, check=True)
    command = installed / "bin" / "graftrace"
    subprocess.run([command, "record", "--", "./one"], cwd=tmp_path, check=True,
                   capture_output=True, timeout=60)
    shown = subprocess.run([command, "show"], cwd=tmp_path, check=True, capture_output=True,
                           text=True, timeout=60).stdout
    assert re.search(r"main\(\) \{\n.*one\(\);\n", shown)


def test_debian_packages_hold_what_is_installed_and_lintian_has_nothing_to_say(installed, tmp_path):
    made = subprocess.run([tree.ROOT / "tools" / "deb"], check=True, capture_output=True, text=True,
                          env={**os.environ, "BUILD": str(tree.BUILD)}).stdout.split()
    assert sorted(Path(path).name.split("_")[0] for path in made) == [
        "graftrace", "libgraftrace-core-dev"]
    said = subprocess.run(["lintian", "--allow-root", *made], capture_output=True, text=True)
    assert said.returncode == 0 and said.stdout == "", said.stdout
    for path in made:
        subprocess.run(["dpkg-deb", "-x", path, tmp_path], check=True)
    names = lambda root: {str(path.relative_to(root)).removesuffix(".gz")
                          for path in Path(root).rglob("*") if path.is_file()}
    unpacked = {name for name in names(tmp_path / "usr") if not name.startswith("share/doc/")}
    assert unpacked == names(installed)
    done = subprocess.run([tmp_path / "usr" / "bin" / "graftrace", "--version"], check=True,
                          capture_output=True, text=True)
    assert done.stdout.startswith("graftrace ")
    for file in tmp_path.rglob("*.pc"):
        assert "prefix=/usr\n" in file.read_text()
