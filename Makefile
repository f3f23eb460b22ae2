# SPDX-License-Identifier: MIT
#
# The front door. Meson describes the build; this file only calls it, and installs what is
# missing before (tools/setup, which is quick when nothing is).

BUILD   ?= build
PREFIX  ?= /usr/local
DESTDIR ?=

.DEFAULT_GOAL := all
.PHONY: all graftrace setup demo test test-long bench pictures install format clean distclean help targets image run deb
.NOTPARALLEL:

all: ## build graftrace (in build/; BUILD=DIR for another place, CC=clang for another compiler)
	@tools/setup build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD)

graftrace: ## only the command (in build/cli/), without what the tests need
	@tools/setup build
	@test -f $(BUILD)/build.ninja || meson setup $(BUILD) --prefix=$(PREFIX)
	@ninja -C $(BUILD) cli/graftrace

setup: ## install every Debian and npm package that any target needs
	@tools/setup

demo: ## trace a real program built from its Debian source package, in under five minutes
	@tools/setup build demo
	@tools/demo

targets: ## list the programs that the unikernel can be built with
	@tools/unikernel targets

# The options of these two stand at the head of tools/unikernel.
export TARGET TRACE CPUS MEMORY BUFFER LINGER OPTIONS DISK PORT TRACE_PORT QEMU QEMU_ARGS BUILD
image: ## build the unikernel with TARGET=… in it (TRACE=ftrace: traced) and say where it is
	@tools/setup build unikernel
	@tools/unikernel image

run: ## the same, and boot it in QEMU: CPUS=, MEMORY=, BUFFER=; ports 8080 and 9090 on 127.0.0.1
	@tools/setup build unikernel
	@tools/unikernel run make

test: ## everything that must hold: both compilers, sanitizers, end to end, a few seconds of fuzzing
	@tools/setup build test demo unikernel
	@tests/run

test-long: ## the same with 60 seconds for each fuzzer
	@tools/setup build test demo unikernel
	@tests/run --long

bench: ## measure against the peers; writes bench/results.md
	@tools/setup build bench unikernel
	@bench/run

pictures: ## make the pictures of doc/pictures anew, by QEMU and a browser
	@tools/setup build test unikernel
	@tools/pictures

install: all ## install below PREFIX (default /usr/local), staged in DESTDIR if given
	@meson configure $(BUILD) -Dprefix=$(PREFIX)
	@ninja -C $(BUILD)
	@DESTDIR="$(DESTDIR)" meson install -C $(BUILD) --no-rebuild

deb: all ## make Debian packages of the tool and of the core's library, in build/deb/
	@BUILD="$(BUILD)" tools/deb

format: ## lay out the C files as .clang-format says
	@tools/setup test
	@git ls-files -z --cached --others --exclude-standard '*.c' '*.h' | xargs -0 clang-format -i

clean: ## remove what was built; sources fetched from Debian's archive stay in fetched/
	rm -rf build build-clang build-asan build-tsan build-fuzz

distclean: clean ## remove what was fetched, too
	rm -rf fetched

help: ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 16
