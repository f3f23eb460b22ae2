# SPDX-License-Identifier: MIT
"""core/ knows no C library: the objects of the build under test are linked and looked at."""

import json
import subprocess
from pathlib import Path

import pytest

import tree

ALLOWED = tree.ROOT / "core" / "undefined_ok.txt"
# The recorder, and the viewer with its rooms below core/.
PARTS = {"record": ["record"], "view": ["trace", "text", "control", "kernel", "http"]}


def core_objects(part):
    """What the build makes of a part's rooms, outside the tests: {source: (object, arguments)}.

    A file that two targets compile counts once.
    """
    listed = json.loads(subprocess.run(
        ["meson", "introspect", "--targets", str(tree.BUILD)],
        check=True, capture_output=True, text=True).stdout)
    found = {}
    for target in listed:
        if "/tests/" in target["defined_in"]:
            continue
        output = Path(target["filename"][0])
        for group in target["target_sources"]:
            for source in group.get("sources", []):
                room = Path(source).resolve().parent
                if room not in [tree.ROOT / "core" / name for name in PARTS[part]]:
                    continue
                # Meson names an object after its source's path from where the target is defined.
                made = list((output.parent / f"{output.name}.p").glob(
                    f"*{Path(source).name}.o"))
                made = [path for path in made
                        if path.name == f"{Path(source).name}.o"
                        or path.name.endswith(f"_{room.name}_{Path(source).name}.o")
                        or path.name == f"{room.name}_{Path(source).name}.o"]
                assert len(made) == 1, f"no object of {source} in {target['name']}"
                found[Path(source).name] = (made[0], group["parameters"])
    return found


def undefined(objects, scratch):
    """Names that stay undefined after a relocatable link of the objects."""
    linked = scratch / "linked.o"
    subprocess.run(["ld", "-r", *objects, "-o", linked], check=True)
    listed = subprocess.run(["nm", "-u", "--format=posix", linked], check=True,
                            capture_output=True, text=True).stdout
    return {line.split()[0] for line in listed.splitlines() if line.strip()}


def allowed():
    """Names of the machine that core/record is bound to at link time."""
    lines = [line.split("#")[0].strip() for line in ALLOWED.read_text().splitlines()]
    return {line for line in lines if line}


@pytest.mark.parametrize("part", ["record", "view"])
def test_core_is_compiled_without_the_c_library(part):
    objects = core_objects(part)
    assert objects, f"the build makes nothing of {PARTS[part]} below core/"
    for made, parameters in objects.values():
        for needed in ("-ffreestanding", "-nostdinc"):
            assert needed in parameters, f"{made} is compiled without {needed}"


@pytest.mark.parametrize("part", ["record", "view"])
def test_every_source_of_core_is_built(part):
    sources = {path.name for room in PARTS[part] for path in (tree.ROOT / "core" / room).glob("*.c")}
    assert sources and sources <= set(core_objects(part))


@pytest.mark.parametrize("part", ["record", "view"])
def test_core_links_with_no_symbol_of_the_c_library(part, tmp_path):
    objects = [made for made, _ in core_objects(part).values()]
    assert objects
    wanted = undefined(objects, tmp_path)
    # The viewer works on operations that it is given: it is bound to nothing.
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
