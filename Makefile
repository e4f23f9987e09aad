# Every target makes what it needs by itself: environment, dependencies, build.
#   make demo     solve a real system and look at how it went
#   make test     all tests: C++ (optimised, and under ThreadSanitizer) and Python
#   make test ROOM=solvers  those of one room, in both languages
#   make check    formatting, linting, types, layer rules, headers, and the fast tests
#   make lint     the same without tests;  make format  puts the formatting right
#   make wheel    wheels for other machines, into dist/ (wheel-gpu: kernels come along, no nvcc)
#   make check-sdist  installs from the source distribution
#   make docs     the documentation site, into build/docs;  make results  docs/results.md
#   make gpu      everything with CUDA into build/gpu (needs nvcc);  make cuda  compiles only
#   make hip      kernels for AMD GPUs: compiled, and their code checked
SHELL := bash
VENV ?= .venv
export PATH := $(abspath $(VENV))/bin:$(PATH)
CORES := $(shell nproc 2>/dev/null || echo 2)
JOBS ?= $(CORES)

CPP_FILES = $(shell find cpufree tests/cpp tests/cuda python examples \
    \( -name '*.hpp' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) 2>/dev/null)
EXTENSION_SOURCES = $(shell find cpufree cmake -type f)
# Groups of threads show how a system is partitioned; GPUs choose their own number.
DEMO_PES ?= $(if $(wildcard /proc/driver/nvidia/gpus/*),auto,$(shell echo $$(($(CORES) < 4 ? $(CORES) : 4))))
DEMO ?= gen:flange_hex?r_out=40,t=8,pipe=20

.PHONY: help demo test test-cpp test-tsan test-asan test-aarch64 test-python check lint format bench-cpu clean
.PHONY: cuda hip gpu kernels wheel-gpu bench-gpu install lint-style lint-types lint-layers lint-headers wheel check-sdist try-wheels
.PHONY: check-browser docs results test-quick test-thorough test-room

help:
	@sed -n '2,11s/^# *//p' Makefile

# What building needs; tests and lint need .dependencies, which has more.
$(VENV)/.requirements: pyproject.toml tools/setup_env.sh
	tools/setup_env.sh --build $(VENV)
	@touch $@
$(VENV)/.dependencies: $(VENV)/.requirements
	tools/setup_env.sh $(VENV) test dev
	@touch $@

# Editable: Python files are used where they lie; the extension is rebuilt when C++ changes.
$(VENV)/.installed: $(VENV)/.requirements CMakeLists.txt $(EXTENSION_SOURCES) tools/build_package.sh
	@echo "building cpufree with $(CORES) cores: about a minute on two, once"
	tools/build_package.sh $(VENV)
	@touch $@
install: $(VENV)/.installed
# With all kernels of the CPU engine: tests use most of them.
$(VENV)/.installed-all: $(VENV)/.requirements CMakeLists.txt $(EXTENSION_SOURCES) tools/build_package.sh
	KERNELS=ALL tools/build_package.sh $(VENV)
	@touch $@ $(VENV)/.installed

demo: install
	cpufree solve "$(DEMO)" --pes $(DEMO_PES) --plot convergence.png

test: $(if $(ROOM),test-room,test-cpp test-tsan test-python)

# Beside the package with all kernels, which they share a build folder with.
test-cpp: $(VENV)/.installed-all $(VENV)/.dependencies
	tools/test_cpp.sh cpu $(JOBS)
test-tsan: $(VENV)/.dependencies
	tools/test_cpp.sh tsan $(JOBS)
# All random schedules and cases, of which the others take a part, and all Python tests but slow ones.
test-thorough: $(VENV)/.installed-all $(VENV)/.dependencies
	tools/test_cpp.sh thorough $(JOBS)
	tools/test_cpp.sh thorough-tsan $(JOBS)
	RANDOM_PROGRAMS=2000 $(PYTEST_TOGETHER) -m "not slow"
test-asan: $(VENV)/.dependencies
	tools/test_cpp.sh asan $(JOBS)
# For 64-bit Arm, cross-compiled (g++-aarch64-linux-gnu), under qemu-user: minutes; no part of CI.
test-aarch64: $(VENV)/.dependencies
	tools/test_cpp.sh aarch64 $(JOBS)
# Bytecode first: where PYTHONDONTWRITEBYTECODE is set, each of the many processes would compile all modules.
test-python: $(VENV)/.installed-all $(VENV)/.dependencies
	python -m compileall -q python/cpufree
	$(PYTEST_TOGETHER)
# Several processes; who has ended takes tests from the others. Tests start teams of threads and processes
# themselves, so that few processes use all cores.
PYTEST_TOGETHER = python -m pytest -q -n $(if $(filter 1 2 3 4 5,$(CORES)),2,4) --dist worksteal
# A room is a folder of tests, of either language or of both: see tools/test_room.py.
test-room:
	@python3 tools/test_room.py --check $(ROOM)
	@$(MAKE) --no-print-directory $(VENV)/.installed-all $(VENV)/.dependencies
	python tools/test_room.py $(ROOM) $(JOBS)

# Some three minutes from a warm build: what most changes break. Long tests are those on fibers,
# which try many schedules, of several processes, and of benchmarks.
check: lint test-quick
QUICK = matrix partition solvers stencil cli engines docs/test_tools.py
test-quick: $(VENV)/.installed-all $(VENV)/.dependencies
	tools/test_cpp.sh cpu $(JOBS) -E fibers
	python -m pytest -q $(addprefix tests/python/,$(QUICK))

lint: lint-style lint-types lint-layers lint-headers

lint-style: $(VENV)/.dependencies
	@echo "clang-format: checking $(words $(CPP_FILES)) files"
	@clang-format --dry-run --Werror $(CPP_FILES)
	ruff format --check .
	ruff check .
lint-types: install $(VENV)/.dependencies
	mypy
lint-layers: install $(VENV)/.dependencies
	python tools/check_layers.py
	python tools/check_build.py
	python tools/check_names.py
	python tools/check_classes.py
	python tools/check_sizes.py
	python tools/machine_header.py --check
	python -m tools.results --check
	python -m tools.example_pages --check
# COMMITS=N: only the headers that the last N commits have changed.
lint-headers: $(VENV)/.dependencies
	python tools/check_headers.py --jobs $(JOBS) $(if $(COMMITS),--commits $(COMMITS))

format: $(VENV)/.dependencies
	@clang-format -i $(CPP_FILES)
	ruff check --fix-only .
	ruff format .

# Source distribution, and from that wheels for all versions of Python and both processors that this
# machine can make: PYTHONS=3.12 ARCHITECTURES=x86_64 makes one. try-wheels installs each into clean
# environments, with interpreters of this machine and of Debian, and solves there.
WHEELS = $(if $(PYTHONS),--pythons $(PYTHONS)) $(if $(ARCHITECTURES),--architectures $(ARCHITECTURES))
wheel: $(VENV)/.dependencies
	python -m tools.wheels.build $(WHEELS)
try-wheels: $(VENV)/.dependencies
	python -m tools.wheels.tried $(if $(wildcard dist/*.whl),dist) $(if $(wildcard dist/gpu/*.whl),dist/gpu) $(WHEELS)

# The source distribution holds what it needs, and installs into an environment of its own.
check-sdist: $(VENV)/.dependencies
	tools/check_sdist.sh

# Traces as Perfetto's own interface shows them, in a headless Chromium.
check-browser: $(VENV)/.installed-all $(VENV)/.dependencies
	tools/check_browser.sh

# Everything in pages that is made from bench/results and from the schema of options.
results: install
	python -m tools.results --write

# Warnings are errors; links within the site are checked, and code of pages and docstrings runs.
docs: install $(VENV)/.dependencies
	tools/build_docs.sh build/docs

cuda: $(VENV)/.dependencies
	cmake --preset cuda -Dnanobind_DIR="$$(python -m nanobind --cmake_dir)"
	cmake --build --preset cuda -j $(JOBS)
	python tools/check_cuda_build.py build/cuda

# Kernels for AMD's GPUs, by Debian's clang in build/hip: registers, memory and instructions of each.
# Half an hour of processor time; QUICK=1: a minute, of a few. SKIP=1: no failure without packages.
hip: $(VENV)/.installed-all $(VENV)/.dependencies
	python tools/check_hip.py --jobs $(JOBS) $(if $(QUICK),--quick) $(if $(SKIP),--skip)

# Everything with CUDA, into build/gpu: programs and C++ tests, and the package in build/gpu/python.
# GPU_PYTHON: the interpreter to build the extension for.
GPU_PYTHON ?= $(VENV)/bin/python
gpu: $(VENV)/.dependencies
	tools/build_gpu.sh $(GPU_PYTHON) $(JOBS)

# The kernels that an installation without nvcc comes with: python/cpufree/kernels, from where
# `python -m build` takes them. Needs NVRTC, no GPU.
kernels: $(VENV)/.dependencies
	KERNELS=USUAL tools/build_gpu.sh $(GPU_PYTHON) $(JOBS)
	$(GPU_PYTHON) tools/ship_kernels.py

# Wheels for GPU users without nvcc: usual kernels come along, others are compiled when first used.
wheel-gpu: $(VENV)/.dependencies
	python -m tools.wheels.build --gpu $(WHEELS)

bench-cpu: install
	python bench/cpu.py --out bench-cpu.jsonl
bench-gpu: install
	cpufree bench cg suite:paper18-small --engine cuda_p2p --pc jacobi --out bench-cg-gpu.jsonl
	cpufree bench report bench-cg-gpu.jsonl --out bench-cg-gpu

clean:
	rm -rf build convergence.png .mypy_cache .ruff_cache .pytest_cache
	rm -f $(VENV)/.installed
