"""The layer table: who may include or import whom, which `tools/check_layers.py` checks.

The same table in words is in docs/design/architecture.md.
"""

from __future__ import annotations

# Room -> what its files may include besides the room itself and base (which all may). The longest
# name counts: stencils/gpu is a room, and not of stencils.
# An entry that ends in .hpp allows that one file.
CPP_MAY_INCLUDE: dict[str, set[str]] = {
    # Foundations.
    "base": set(),
    "problem": set(),
    "reference": {"problem"},
    "device": set(),
    "trace": {"device"},
    "gpu": set(),
    "formats": {"device", "problem"},
    "engines": {"device", "gpu"},
    "distributed": {"problem"},
    "launch": {"device", "distributed", "trace"},
    "launch/cpu": {"distributed", "engines", "launch", "trace"},
    "launch/gpu": {"device", "distributed", "engines", "gpu", "launch", "trace"},
    # Features, each with the parts of the host and of the engines.
    "solvers": {"formats", "device", "problem", "trace"},
    "solvers/host": {"device", "distributed", "formats", "launch", "multigrid", "plugins/gpu"}
    | {"problem", "solvers", "trace", "solvers/cpu/system.hpp", "solvers/gpu/share_layout.hpp"},
    "solvers/cpu": {"device", "distributed", "engines", "formats", "launch/cpu", "multigrid"}
    | {"launch", "multigrid/cpu", "plugins/cpu", "problem", "solvers", "solvers/host"},
    "solvers/gpu": {"device", "distributed", "engines", "formats", "gpu", "launch/gpu", "multigrid"}
    | {"multigrid/gpu", "multigrid/host", "problem", "solvers", "solvers/host", "launch", "trace"},
    "multigrid": {"formats", "device", "problem", "solvers"},
    "multigrid/host": {"distributed", "multigrid", "problem", "solvers/host"},
    "multigrid/cpu": {"engines", "launch/cpu", "multigrid", "multigrid/host", "solvers/cpu"}
    | {"solvers/host"},
    "multigrid/gpu": {"gpu", "multigrid", "multigrid/host", "problem", "solvers/gpu"}
    | {"solvers/host"},
    "stencils": {"device", "problem", "trace"},
    "stencils/cpu": {"stencils", "stencils/host", "launch/cpu", "plugins/cpu"},
    "stencils/gpu": {"device", "gpu", "stencils", "stencils/host", "engines", "launch/gpu"}
    | {"launch"},
    "stencils/host": {
        "trace",
        "device",
        "problem",
        "reference",
        "engines",
        "distributed",
        "launch",
        "launch/cpu",
        "plugins/gpu",
        "stencils",
        "stencils/cpu",
    },
    "programs": {"device", "trace"},
    "programs/cpu": {"programs", "distributed", "launch", "launch/cpu", "trace"},
    "programs/gpu": {"gpu", "programs", "programs/cpu", "engines", "launch/gpu"},
    "triggered": {"reference", "engines", "trace", "triggered/device", "triggered/nics"},
    "triggered/device": {"device", "stencils"},
    "triggered/gpu": {"device", "gpu", "reference", "engines", "triggered", "triggered/device"}
    | {"triggered/nics"},
    "triggered/nics": {
        "device",
        "trace",
        "gpu",
        "engines",
        "triggered/device",
        "triggered/nics/gpu_nics.hpp",
        "triggered/nics/nics.hpp",
        "triggered/nics/operations.hpp",
        "triggered/nics/host_port.hpp",
    },
    "probes": {"device"},
    "probes/host": {"device", "probes", "engines", "launch"},
    "probes/gpu": {
        "distributed",
        "gpu",
        "probes",
        "probes/host",
        "engines",
        "launch",
        "launch/gpu",
        "baselines/nccl_library.hpp",
        "baselines/nvshmem_library.hpp",
    },
    "baselines": {
        "gpu",
        "formats",
        "problem",
        "device/pack.hpp",
        "device/types.hpp",
        "engines/gpu_p2p/atomic.cuh",
        "engines/gpu_p2p/shared.hpp",
        "engines/remote/nvshmem/library.hpp",
        "solvers/host/setup.hpp",
        "solvers/host/spec.hpp",
        "solvers/method.hpp",
        "stencils/local.hpp",
    },
    "simulate": {"problem", "reference"},
    # Above them: the tables of what lies in shared objects of its own.
    "plugins/cpu": {"engines", "formats", "launch", "problem", "solvers", "solvers/host"}
    | {"stencils"},
    "plugins/gpu": {
        "launch/gpu",
        "probes/gpu",
        "programs/gpu",
        "solvers/gpu/make_system.hpp",
        "solvers/gpu/many.hpp",
    }
    | {"stencils/gpu"},
    "bindings": {"problem", "baselines", "simulate", "solvers/host", "stencils", "stencils/host"}
    | {"distributed", "launch", "launch/cpu", "plugins/cpu", "plugins/gpu", "programs/cpu"}
    | {"probes/host", "trace", "triggered", "triggered/gpu", "multigrid/near_null_space.hpp"}
    | {"solvers/gpu/plan/memory.hpp"},
    # What programs in C, C++ and Fortran see, and the library behind it.
    "cpufree.h": set(),
    "solver.hpp": {"cpufree.h"},
    "library": {"cpufree.h", "distributed", "launch", "multigrid", "plugins/cpu", "problem"}
    | {"solvers", "solvers/host"},
}
# These have rooms of their own inside, which do not see one another.
CPP_SPLIT_ROOMS = ("engines", "triggered/nics")

# Python rooms: a package, or a module with a row of its own. All may import PYTHON_BASE.
PYTHON_BASE = {
    "options",
    "errors",
    "launchers",
    "env",
    "dtypes",
    "text",
    "host",
    "laps",
    "extension",
    "kernel_cache",
    "patience",
    "cpu_kernels",
    "device_arrays",
    "output_file",
    "arguments",
    "calls",
    "docstrings",
    "log",
    "summary",
    "_core",
}
# Room -> what its modules may import besides the room itself and PYTHON_BASE. The longest name
# counts: cpufree.matrix.load is of the room matrix.load, and not of matrix.
PYTHON_MAY_IMPORT: dict[str, set[str]] = {
    **{name: set() for name in PYTHON_BASE},
    "matrix": set(),
    "generate": {"matrix"},
    "matrix.load": {"matrix", "generate"},
    "matrix.save": {"matrix", "matrix.load"},
    "partition": {"matrix"},
    "distributed": set(),
    "engines": {"matrix", "partition", "distributed", "machine", "engines.remote"},
    # Where libraries of processes with a GPU each lie.
    "engines.remote": {"distributed", "engines"},
    "multigrid": {"matrix", "partition", "engines", "machine"},
    "solvers": {"matrix", "matrix.load", "partition", "distributed", "engines", "machine"}
    | {"engines.remote", "model", "multigrid", "trace"},
    "stencil": {"distributed", "engines", "engines.remote", "machine", "model", "trace"},
    "machine": set(),
    "model": {"machine", "engines.remote", "_mpi_messages"},
    "simulate": {"machine", "model", "partition", "matrix", "matrix.load"},
    "compiler": {"distributed", "engines", "machine", "stencil", "trace"},
    "dace": {"compiler", "dace.values", "dace.graph", "dace.lowering", "dace.messages", "trace"},
    "dace.values": {"compiler"},
    "dace.graph": {"dace.values"},
    # Nodes of messages are read where others are, and their arguments like those of others.
    "dace.lowering": {"compiler", "dace.values", "dace.graph", "dace.messages"},
    "dace.messages": {"compiler", "dace.values", "dace.lowering"},
    "trace": set(),
    "triggered": {"_triggered", "_triggered_gpu", "trace"},
    "_triggered": set(),
    "_triggered_gpu": set(),
    "_baselines": set(),
    "_baselines_mpi": set(),
    "_mpi_messages": set(),
    "amg": {"multigrid"},
    "factors": {"matrix"},
    "gradients": {"solvers", "engines"},
    "torch": {"gradients"},
    "jax": {"gradients"},
    "__init__": {
        "amg",
        "factors",
        "generate",
        "matrix",
        "matrix.load",
        "matrix.save",
        "partition",
        "solvers",
    }
    | {"jax", "torch", "stencil", "compiler", "trace", "triggered"},
}
# Programs: they may import all rooms, and none of those above may import them.
PYTHON_PROGRAMS = {"cli", "bench", "__main__"}
