# The front door. The build itself is CMake; these targets set up what it needs and call it.
# Nothing here is needed to build: cmake -S . -B build/x -G Ninja && cmake --build build/x

JOBS ?= $(shell nproc)
PYTHON := .venv/bin/python
PREFIX ?= /usr/local

.PHONY: help setup demo test build unit lint conformance python-test bench asan tsan valgrind fuzz \
        oom docs format install clean

help:
	@sed -n 's/^## //p' Makefile

setup:
	@tools/bootstrap.sh

## make demo         sets up, builds, runs a real model many times, prints the memory report
demo: build
	@$(PYTHON) tools/demo.py

## make test         everything a contributor must pass
test: setup lint unit conformance python-test

## make build        release build in build/release
build: setup
	@cmake -S . -B build/release -G Ninja -DCMAKE_BUILD_TYPE=Release -DTENURE_BUILD_PYTHON=ON \
	  -DTENURE_BUILD_TESTS=ON > build/release.log 2>&1 || (cat build/release.log; false)
	@cmake --build build/release -j $(JOBS) --quiet

unit: build
	@ctest --test-dir build/release --output-on-failure -j $(JOBS)

## make lint         format, layers, exported symbols, names, sizes
lint: setup
	@$(PYTHON) tools/check_source.py
	@tools/check_format.sh

## make conformance  the ONNX backend data on disk, through the C library
conformance: build
	@$(PYTHON) tools/conformance.py build/release/tenure_conformance build/conformance.tsv

python-test: build
	@$(PYTHON) -m pytest -q tests/python

## make bench        every benchmark beside its peer; minutes
bench: setup
	@cmake -S . -B build/bench -G Ninja -DCMAKE_BUILD_TYPE=Release -DTENURE_BUILD_BENCH=ON > /dev/null
	@cmake --build build/bench -j $(JOBS) --quiet
	@$(PYTHON) bench/run.py build/bench

## make asan         C tests under AddressSanitizer and UndefinedBehaviorSanitizer
asan: setup
	@cmake -S . -B build/asan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTENURE_SANITIZE=address > /dev/null
	@cmake --build build/asan -j $(JOBS) --quiet
	@ctest --test-dir build/asan --output-on-failure -j $(JOBS)

## make tsan         threaded C tests under ThreadSanitizer
tsan: setup
	@cmake -S . -B build/tsan -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTENURE_SANITIZE=thread > /dev/null
	@cmake --build build/tsan -j $(JOBS) --quiet
	@ctest --test-dir build/tsan --output-on-failure -R 'thread|arena|allocator|session|lease'

## make valgrind     C tests under valgrind
valgrind: setup
	@cmake -S . -B build/debug -G Ninja -DCMAKE_BUILD_TYPE=Debug > /dev/null
	@cmake --build build/debug -j $(JOBS) --quiet
	@tools/valgrind.sh build/debug

## make fuzz         fuzz targets, SECONDS=60 each
fuzz: setup
	@CC=clang cmake -S . -B build/fuzz -G Ninja -DCMAKE_BUILD_TYPE=Debug -DTENURE_BUILD_FUZZERS=ON \
	  -DTENURE_BUILD_TESTS=OFF > /dev/null
	@cmake --build build/fuzz -j $(JOBS) --quiet
	@tools/fuzz.sh build/fuzz $${SECONDS_EACH:-60}

## make oom          every allocation made to fail in turn
oom: build
	@ctest --test-dir build/release --output-on-failure -R 'oom|allocator|arena|model|session'

## make docs         generated pages and their drift check
docs: build
	@$(PYTHON) tools/make_docs.py build/release/tenure

## make format       clang-format over all sources
format: setup
	@tools/check_format.sh --fix

## make install      PREFIX=/usr/local
install: build
	@cmake --install build/release --prefix $(PREFIX)

clean:
	rm -rf build
