# Every target makes what it needs by itself: environment, dependencies, build.
#   make demo     solve a real system and look at how it went
#   make test     all tests: C++ (optimised, and under ThreadSanitizer) and Python
#   make check    formatting, linting, types, layer rules, headers, and the fast tests
#   make lint     the same without tests;  make format  puts the formatting right
#   make gpu      everything with CUDA into build/gpu (needs nvcc);  make cuda  compiles only
SHELL := bash
VENV ?= .venv
export PATH := $(abspath $(VENV))/bin:$(PATH)
JOBS ?= $(shell nproc 2>/dev/null || echo 2)

CPP_FILES = $(shell find cpufree tests/cpp tests/cuda python examples \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null)
EXTENSION_SOURCES = $(shell find cpufree cmake -type f)
# Four groups of threads show how a system is partitioned; GPUs choose their own number.
DEMO_PES ?= $(if $(wildcard /proc/driver/nvidia/gpus/*),auto,4)
DEMO ?= gen:flange_hex?r_out=40,t=8,pipe=20

.PHONY: help demo test test-cpp test-tsan test-asan test-python check lint format bench-cpu clean
.PHONY: cuda gpu bench-gpu install

help:
	@sed -n '2,7s/^# *//p' Makefile

$(VENV)/.dependencies: pyproject.toml tools/setup_env.sh
	tools/setup_env.sh $(VENV)
	@touch $@

# Editable: Python files are used where they lie; the extension is rebuilt when C++ changes.
$(VENV)/.installed: $(VENV)/.dependencies CMakeLists.txt $(EXTENSION_SOURCES)
	python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
install: $(VENV)/.installed

demo: install
	cpufree solve "$(DEMO)" --pes $(DEMO_PES) --plot convergence.png

test: test-cpp test-tsan test-python

test-cpp: $(VENV)/.dependencies
	tools/test_cpp.sh cpu $(JOBS)
test-tsan: $(VENV)/.dependencies
	tools/test_cpp.sh tsan $(JOBS)
test-asan: $(VENV)/.dependencies
	tools/test_cpp.sh asan $(JOBS)
test-python: install
	python -m pytest -q

check: lint test-cpp test-python

lint: install
	@echo "clang-format: checking $(words $(CPP_FILES)) files"
	@clang-format --dry-run --Werror $(CPP_FILES)
	ruff format --check .
	ruff check .
	mypy
	python tools/check_layers.py
	python tools/check_headers.py --jobs $(JOBS)

format: $(VENV)/.dependencies
	@clang-format -i $(CPP_FILES)
	ruff check --fix-only .
	ruff format .

cuda: $(VENV)/.dependencies
	cmake --preset cuda
	cmake --build --preset cuda -j $(JOBS)

# Everything with CUDA, into build/gpu: programs and C++ tests, and the package in build/gpu/python.
# GPU_PYTHON: the interpreter to build the extension for.
GPU_PYTHON ?= $(VENV)/bin/python
gpu: $(VENV)/.dependencies
	tools/build_gpu.sh $(GPU_PYTHON) $(JOBS)

bench-cpu: install
	python bench/cpu.py
bench-gpu: install
	CUDA_MODULE_LOADING=EAGER python bench/gpu.py

clean:
	rm -rf build convergence.png .mypy_cache .ruff_cache .pytest_cache
	rm -f $(VENV)/.installed
