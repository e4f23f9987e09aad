"""The environment variables that the package reads, with what each takes."""

from __future__ import annotations

from cpufree.options import ENGINES
from cpufree.options.schema import Variable

CPU_LEVELS = ("auto", "x86-64-v2", "x86-64-v3", "neon", "sve")
LOG_LEVELS = ("debug", "info", "warning", "error")
VARIABLES = (
    Variable("CPUFREE_ENGINE", "engine: " + ", ".join(ENGINES)),
    Variable("CPUFREE_PES", "number of PEs: auto, or a whole number from 1"),
    Variable(
        "CPUFREE_BLOCKS",
        "blocks (threads on the CPU engine) per PE: auto, or a whole number from 1",
    ),
    Variable("CPUFREE_GPUS", "GPUs that may be used: auto, all, or device numbers such as 0,2-5"),
    Variable(
        "CPUFREE_NODE_SIZE", "PEs of a node, as if each were a machine: auto, or a number from 1"
    ),
    Variable("CPUFREE_WAIT_LIMIT", "seconds a PE may wait for another: a number above 0"),
    Variable("CPUFREE_CPU_LEVEL", "instruction set of the CPU engine: " + ", ".join(CPU_LEVELS)),
    Variable(
        "CPUFREE_ARCH",
        "architecture that GPU kernels are made for, as portable code, for tests: sm_80 and on",
    ),
    Variable(
        "CPUFREE_KERNEL_CACHE",
        "folder that keeps kernels and programs which were compiled here: a path, or off",
    ),
    Variable("CPUFREE_MACHINE", "machine that decisions go by: h100, h200, or a machine file"),
    Variable("CPUFREE_LOG", "how much is logged: " + ", ".join(LOG_LEVELS)),
    Variable("CPUFREE_CXX", "C++ compiler of CPU kernels and of programs, with options: c++"),
    Variable("CPUFREE_RANK", "which of several processes this one is: a whole number from 0"),
    Variable("CPUFREE_RANKS", "how many processes there are: a whole number from 1"),
    Variable(
        "CPUFREE_LOCAL_RANK",
        "which of the processes of its machine this one is: a number from 0",
    ),
    Variable(
        "CPUFREE_RENDEZVOUS", "where processes meet: HOST:PORT of rank 0, file:PATH, local:PATH"
    ),
    Variable("CPUFREE_JOB", "a name that processes of one run have in common, and no others"),
    Variable(
        "CPUFREE_SECRET",
        "a random text that only the processes of one run know: 16 characters or more",
    ),
    Variable(
        "CPUFREE_COMMIT",
        "commit of a source tree without git, for records: 3649143, 3649143-dirty",
    ),
    Variable(
        "CPUFREE_JOIN_LIMIT",
        "seconds that processes wait for one another to come: a number above 0",
    ),
)
