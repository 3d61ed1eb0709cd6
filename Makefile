# Front door. The build is CMake underneath: cmake -S . -B build/x -G Ninja && cmake --build build/x
VENV   ?= .venv
JOBS   ?= $(shell nproc)
PREFIX ?= /usr/local
# Seconds that each fuzz target runs.
FUZZ_SECONDS ?= 30

PY      := $(VENV)/bin/python
CMAKE   := cmake -G Ninja -S .
BUILD   := cmake --build
CTEST   := ctest --output-on-failure -j $(JOBS) --test-dir
RELEASE := build/release
PYTEST  := $(PY) -m pytest -q -p no:cacheprovider
export VENV

# $(call configure,FOLDER,OPTIONS): quiet unless it fails.
define configure
	@$(CMAKE) -B $(1) $(2) >$(1).configure.log 2>&1 || { cat $(1).configure.log; exit 1; }
endef

.DEFAULT_GOAL := build
.PHONY: help setup build demo test check-c check-python conformance bench asan tsan valgrind fuzz \
	oom docs docs-check format lint tidy install clean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup:
	@mkdir -p build
	@tools/bootstrap.sh

build: setup ## release build of libraries, command line and Python package
	$(call configure,$(RELEASE),-DCMAKE_BUILD_TYPE=Release -DTENURE_BUILD_TESTS=OFF \
		-DTENURE_BUILD_PYTHON=ON -DPython3_EXECUTABLE=$(abspath $(PY)))
	@$(BUILD) $(RELEASE) -j $(JOBS)

demo: build ## run a real model: answer, latency, plan, memory
	@$(PY) tools/demo.py

test: build lint check-c conformance check-python docs-check ## everything a contributor must pass

check-c: setup
	$(call configure,build/dev,-DCMAKE_BUILD_TYPE=Debug)
	@$(BUILD) build/dev -j $(JOBS)
	@$(CTEST) build/dev

check-python: build check-c
	$(PYTEST) tests

conformance: build ## ONNX backend suite on disk; writes build/conformance.tsv
	@$(PY) tools/conformance.py $(RELEASE)/tenure_conformance build/conformance.tsv

bench: build ## every benchmark, interleaved with its peer
	@$(PY) bench/run.py

asan: setup ## the whole suite under AddressSanitizer and UndefinedBehaviorSanitizer
	$(call configure,build/asan,-DCMAKE_BUILD_TYPE=Debug -DTENURE_SANITIZE=address)
	@$(BUILD) build/asan -j $(JOBS)
	@ASAN_OPTIONS=detect_leaks=1 $(CTEST) build/asan
	@ASAN_OPTIONS=detect_leaks=1 $(PY) tools/conformance.py build/asan/tenure_conformance \
		build/conformance_asan.tsv --seconds 600

tsan: setup ## the C tests that use threads, under ThreadSanitizer
	$(call configure,build/tsan,-DCMAKE_BUILD_TYPE=RelWithDebInfo -DTENURE_SANITIZE=thread)
	@$(BUILD) build/tsan -j $(JOBS)
	@TSAN_OPTIONS=halt_on_error=1 $(CTEST) build/tsan --timeout 1200 -R \
		'thread|arena|lease|allocator|source|ledger|session|context|environment|log|reports'

valgrind: ## the C tests under Memcheck
	@mkdir -p build && tools/bootstrap.sh valgrind
	$(call configure,build/dev,-DCMAKE_BUILD_TYPE=Debug)
	@$(BUILD) build/dev -j $(JOBS)
	@tools/run_valgrind.sh build/dev

fuzz: ## every fuzz target for FUZZ_SECONDS
	@mkdir -p build && tools/bootstrap.sh fuzz
	$(call configure,build/fuzz,-DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DTENURE_BUILD_TESTS=OFF -DTENURE_BUILD_FUZZERS=ON)
	@$(BUILD) build/fuzz -j $(JOBS)
	@tools/run_fuzzers.sh build/fuzz $(FUZZ_SECONDS)

oom: check-c ## sweep that fails the k-th allocation, for every k
	@tools/run_oom.sh build/dev

docs: build ## generated pages: operators, API reference, man page
	@$(PY) tools/make_docs.py --build $(RELEASE)

docs-check: build
	@$(PY) tools/make_docs.py --build $(RELEASE) --check

format: setup ## clang-format over every C file
	@tools/check_format.sh --fix

lint: build ## format, layers, names, symbols
	@tools/check_format.sh
	@$(PY) tools/check_layers.py
	@$(PY) tools/check_names.py
	@$(PY) tools/check_symbols.py $(RELEASE)

tidy: build ## clang-tidy over the library (slow)
	@tools/bootstrap.sh lint
	@git ls-files 'src/*.c' | grep -vE '_(test|fuzz|bench|avx512)\.c$$' | \
		xargs -r -n 8 -P $(JOBS) clang-tidy --quiet -p $(RELEASE)

install: build ## PREFIX=/usr/local, DESTDIR=
	@DESTDIR=$(DESTDIR) cmake --install $(RELEASE) --prefix $(PREFIX)

clean:
	rm -rf build
