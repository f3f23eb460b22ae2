# SPDX-License-Identifier: MIT
"""core/ knows no C library: the objects of the build under test are linked and looked at."""

import json
import subprocess

import pytest

import tree

ALLOWED = tree.ROOT / "core" / "undefined_ok.txt"


def core_targets(part):
    """The static libraries that the build makes from core/<part>: (archive, compiler arguments)."""
    listed = json.loads(subprocess.run(
        ["meson", "introspect", "--targets", str(tree.BUILD)],
        check=True, capture_output=True, text=True).stdout)
    found = []
    for target in listed:
        if target["type"] != "static library":
            continue
        groups = [group for group in target["target_sources"]
                  if any(f"{tree.ROOT}/core/{part}/" in source
                         for source in group.get("sources", []))]
        if groups:
            found.append((target["filename"][0], [group["parameters"] for group in groups]))
    return found


def undefined(objects, scratch):
    """Names that stay undefined after a relocatable link of the archives or objects."""
    linked = scratch / "linked.o"
    subprocess.run(["ld", "-r", "--whole-archive", *objects, "-o", linked], check=True)
    listed = subprocess.run(["nm", "-u", "--format=posix", linked], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


def allowed():
    """Names of the machine that core/record is bound to at link time."""
    lines = [line.split("#")[0].strip() for line in ALLOWED.read_text().splitlines()]
    return {line for line in lines if line}


@pytest.mark.parametrize("part", ["record", "view"])
def test_core_is_compiled_without_the_c_library(part):
    targets = core_targets(part)
    assert targets, f"the build makes no static library from core/{part}"
    for archive, groups in targets:
        for parameters in groups:
            for needed in ("-ffreestanding", "-nostdinc"):
                assert needed in parameters, f"{archive} is compiled without {needed}"


@pytest.mark.parametrize("part", ["record", "view"])
def test_core_links_with_no_symbol_of_the_c_library(part, tmp_path):
    archives = [archive for archive, _ in core_targets(part)]
    assert archives
    wanted = undefined(archives, tmp_path)
    # core/view works on operations that it is given: it is bound to nothing.
    assert wanted <= (allowed() if part == "record" else set())


def test_names_left_undefined_are_the_machine_that_the_two_headers_describe():
    headers = "".join((tree.ROOT / "core" / "record" / name).read_text()
                      for name in ("arch.h", "port.h"))
    strange = [name for name in allowed() if name not in headers]
    assert not strange, f"in {ALLOWED.name}, but in neither arch.h nor port.h: {strange}"


def test_a_call_of_the_c_library_is_caught(tmp_path):
    source = tmp_path / "bad.c"
    source.write_text("void *malloc(unsigned long);\n"
                      "struct big { char bytes[400000]; };\n"
                      "void copy(struct big *to, const struct big *from) { *to = *from; }\n"
                      "void *get(void) { return malloc(1); }\n")
    built = tmp_path / "bad.o"
    subprocess.run(["gcc", "-O2", "-ffreestanding", "-nostdinc", "-c", source, "-o", built],
                   check=True)
    found = undefined([built], tmp_path)
    assert {"malloc", "memcpy"} <= found
    assert not {"malloc", "memcpy"} & allowed()
