# The commands of README.md, thin over CMake presets and tools/. Nothing is decided here.

export CMAKE_BUILD_PARALLEL_LEVEL ?= $(shell nproc)
FUZZ_SECONDS ?= 20
# What make serve runs: by default a demo directory, which is created if it is missing.
SERVE ?= serve demo=build/demo

.PHONY: help install-deps test test-long serve build deb oci static bench docs asan tsan fuzz format
.DEFAULT_GOAL := help

help:
	@echo 'make test          build and run the tests of a change: release, then ASan and UBSan, then TSan'
	@echo 'make test-long     the same, then everything else: for a release'
	@echo 'make build         build the program and the libraries in build/program'
	@echo 'make deb           build the Debian packages in build/deb'
	@echo 'make oci           build the OCI image in build/oci'
	@echo 'make static        build the static program build/static/sluice-static'
	@echo 'make serve         build the program and serve a demo directory (SERVE="arguments" instead)'
	@echo 'make bench         run every benchmark; results in build/release/bench/results.jsonl'
	@echo 'make docs          make the reference of the API, in build/docs/html'
	@echo 'make asan, tsan    one sanitizer stage of make test'
	@echo 'make fuzz          run every fuzz target for FUZZ_SECONDS (now $(FUZZ_SECONDS))'
	@echo 'make format        lay the sources out with clang-format'
	@echo 'make install-deps  install the Debian packages that are missing (every target installs those it needs)'

install-deps:
	@tools/install-deps

build:
	@tools/install-deps program
	@cmake --preset program
	@cmake --build --preset program

deb:
	@tools/install-deps package
	@cmake --preset package
	@cmake --build --preset package
	@tools/package deb

oci:
	@tools/install-deps package
	@cmake --preset package
	@cmake --build --preset package
	@tools/package oci

static:
	@tools/install-deps package
	@cmake --preset static
	@cmake --build --preset static
	@strip -o build/static/sluice-static build/static/sluice/cli/sluice

test: install-deps
	@tools/run-tests release asan tsan

test-long: install-deps
	@tools/run-tests release asan tsan release-rest asan-rest

asan tsan: install-deps
	@tools/run-tests $@

serve: build
	@tools/make-demo build/demo
	@build/program/sluice/cli/sluice $(SERVE)

bench: install-deps
	@cmake --preset release
	@cmake --build --preset release
	@tools/run-benchmarks build/release/bench

docs: install-deps
	@cmake --preset release
	@tools/docs build/release build/docs

fuzz: install-deps
	@cmake --preset fuzz
	@cmake --build --preset fuzz --target fuzzers
	@tools/run-fuzzers build/fuzz/fuzz $(FUZZ_SECONDS)

format: install-deps
	@tools/format
