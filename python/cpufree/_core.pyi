"""The compiled core: distributed systems and the solves of them. Not a public interface."""

from collections.abc import Callable, Sequence
from typing import Any, TypedDict, overload

import numpy as np
import numpy.typing as npt

# The dictionaries are plain ones; these names exist for type checkers alone.

class GpuInfo(TypedDict):
    """A GPU as the driver describes it. Numbers are CUDA's, after CUDA_VISIBLE_DEVICES."""

    index: int
    name: str
    memory_bytes: int
    multiprocessors: int
    compute_capability: tuple[int, int]
    l2_bytes: int
    uuid: str

class Plan(TypedDict):
    """How a matrix lies on the PEs; the lists have one element for each."""

    engine: str
    pes: int
    nodes: int  # whose PEs reach one another by loads and stores
    blocks: int
    threads: int  # per block; 1 on the CPU engine, where a block is one thread
    rows: list[int]
    nnz: list[int]
    ghosts: list[int]
    boundary_rows: list[int]
    neighbours: list[list[tuple[int, int]]]  # PE, values sent to it in an exchange
    edge_cut: int
    halo_values: int
    imbalance: float
    matrix_bytes: float  # in the format of the engine, all PEs
    halo: str  # "packets", whose values carry their flag, "stores" with flags behind them, "none"
    block_halo: str  # among blocks of one PE: "packets", or "flags" behind stores
    resident_vectors: int  # vectors that stay on chip across iterations
    resident_matrix: bool  # whether the matrix does
    ring_slots: int  # of the rings through which the matrix comes; 0: it does not
    lanes_per_row: int  # the most threads that share a row
    shared_bytes: int  # on-chip memory of a block that this takes
    factors: str  # the preconditioner that has factors, or "none"
    factor_entries: int  # of all PEs
    factor_bytes: float
    factors_replaced: int  # rows, or blocks, that have their diagonal alone
    levels: list[dict[str, Any]]  # of multigrid: rows, nnz, transfer_nnz, inverted, bytes
    coarsest_why: str  # what has kept it from coarser levels; "": nothing
    diagonal_spread: float  # its largest entry over the smallest, on the CPU
    seconds: dict[str, float]  # of the set-up, in this process

class Outcome(TypedDict):
    """How a solve ended. Norms are absolute 2-norms, seconds those of the kernels."""

    x: npt.NDArray[Any] | None  # None: it lies in the array given as out
    reason: str
    iterations: int
    residual: float
    true_residual: float
    weighted_residual: float
    bnorm: float
    history: npt.NDArray[np.float64]
    history_stride: int
    replacements: int
    handed_over_at: int  # iteration at which prcg took over from pipecg, or -1
    lambda_max: float
    seconds: float
    laps: dict[str, float]  # seconds of the parts of a solve, in order
    disturbances: int  # on CPU threads: how often others had taken a thread's core
    split: dict[str, float] | None  # seconds of phases, with the option study "split"
    trace: dict[str, Any] | None  # tracks, records, bytes, starts; with the option study "trace"
    reductions: int
    exchanges: int
    pes: int
    blocks: int

class SlabPlan:
    """The share of this rank in a matrix whose rows all ranks give together."""

    def __init__(
        self,
        first: int,  # number of its first row
        all_rows: int,  # of all ranks
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int64],
        data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
        tolerance: float,  # for asymmetry; below 0: entries are not checked
        team: Any,  # rank, size, all_gather, gather, exchange
    ) -> None: ...
    @property
    def asymmetry(self) -> float: ...
    @property
    def nnz(self) -> int: ...  # of this rank

most_block_halo_nonzeros: int
least_gpu_layout_nonzeros: int

class System:
    """A matrix laid out for the PEs of an engine; solved as often as wanted."""

    @overload
    def __init__(
        self,
        indptr: npt.NDArray[np.int64],
        indices: npt.NDArray[np.int32],
        data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
        part: npt.NDArray[np.int32] | None,
        order: npt.NDArray[np.int32] | None,
        pes: int,
        blocks: int,  # 0: automatic
        engine: str,
        gpus: list[int] = ...,  # one per PE; empty for the CPU engine
        tuning: dict[str, Any] = ...,  # for experiments
        team: Any = ...,  # cpu_processes, nvshmem: rank, size, all_gather, gather, exchange
    ) -> None: ...
    @overload
    def __init__(
        self,
        n: int,  # of a matrix on a GPU; arrays by their addresses there
        indptr: int,
        wide: bool,  # indptr is int64, else int32
        indices: int,  # int32
        data: int,
        singles: bool,  # data is float32, else float64
        device: int,
        blocks: int,
        gpus: list[int],
        tuning: dict[str, Any],
    ) -> None: ...
    @overload
    def __init__(
        self,
        slab: SlabPlan,  # empty afterwards
        pes: int,
        blocks: int,
        engine: str,
        gpus: list[int],
        tuning: dict[str, Any],
        team: Any,
    ) -> None: ...
    def plan(self) -> Plan: ...
    def update(
        self,
        indptr: npt.NDArray[np.int64],  # of the pattern that it was made with
        indices: npt.NDArray[np.int32],
        data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
    ) -> bool: ...  # False: these values do not fit into the layout, and nothing has changed
    def usable(self) -> bool: ...  # False: an update has failed in the middle
    def solve(
        self,
        b: Any,  # NumPy arrays, or with cuda_p2p arrays on a GPU, which then need out
        x0: Any,
        out: Any,
        options: dict[str, Any],
        progress: Callable[[int, float], bool] | None,
    ) -> Outcome: ...
    def solve_columns(
        self,
        b: list[Any],  # 2, 4 or 8 vectors, as solve takes them
        x0: list[Any] | None,
        out: list[Any] | None,
        options: dict[str, Any],
        progress: Callable[[int, float], bool] | None,  # of the column that is farthest behind
    ) -> list[Outcome]: ...  # seconds, reductions and exchanges are those of all of them
    def refuses_columns(self) -> str: ...  # why it cannot; "": it can

__version__: str  # of cpufree, from pyproject.toml
compiler: str  # that of the extension's C++, such as "GNU 12.2.0"

def cpu_level() -> str:
    """Return the instruction set of the CPU engine's kernels in use, such as "x86-64-v3".

    InvalidInputError, UnsupportedError: the one that CPUFREE_CPU_LEVEL names cannot be had here.
    """

def cpu_lacks() -> str:
    """Return what this processor lacks of the one that CPU kernels were built for, "" if nothing.

    By the names of /proc/cpuinfo. Then no kernel is taken from the build.
    """

def take_built_in_kernels(taken: bool) -> None:
    """Say whether CPU kernels that are built in are used; else all are compiled. For tests."""

class CodeClaim:
    """The right to make a code, which other processes wait for; held until the object is gone."""

class CodeCache:
    """Code that was compiled on this machine, on disk (cpufree/base/code_cache.hpp)."""

    def __init__(self, folders: list[str]) -> None:
        """Look in these folders, in their order; keep in the first that can be written."""

    def find_file(self, key: str) -> str | None:
        """Return the path of a whole file of that key, None where there is none."""

    def keep(self, key: str, code: bytes) -> str | None:
        """Keep code, and return the path of its file, None where it cannot be kept."""

    def claim(self, key: str) -> CodeClaim:
        """Wait until no other process makes the code of that key, ten minutes at most."""

def cpu_levels() -> list[str]:
    """Return those that this processor can run, the fastest last."""

def are_rows(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32] | npt.NDArray[np.int64]
) -> bool:
    """Say whether these are the rows of a square matrix, columns increasing in each."""

def widened(numbers: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
    """Return the same numbers in 64 bits, by all cores."""

def inspect(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
) -> dict[str, Any]:
    """Return the fields of cpufree.entries.Entries; the arrays are rows."""

def largest_entry(data: npt.NDArray[np.float64] | npt.NDArray[np.float32]) -> float:
    """Return the largest of some values, 0 where none is above it; NaN is passed over."""

def residual_norm(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    data: npt.NDArray[np.float64] | npt.NDArray[np.float32],
    b: npt.NDArray[np.float64],
    x: npt.NDArray[np.float64],
) -> float:
    """Return the Euclidean norm of b - A x, by all cores, in double precision."""

def mean_distance(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    place: npt.NDArray[np.int32] | None,
    part: npt.NDArray[np.int32] | None,
) -> float:
    """Return the mean of |place_i - place_j| over the entries inside parts."""

def partition_cost(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    part: npt.NDArray[np.int32],
    pes: int,
) -> dict[str, Any]:
    """Return what a partition costs: by PE rows, nnz, boundary_rows; traffic, cut.

    traffic[reader * pes + owner]: distinct rows of owner that rows of reader read. cut: entries
    whose row and column are on different PEs.
    """

def compressed_graph(
    indptr: npt.NDArray[np.int64], indices: npt.NDArray[np.int32], merge: bool
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the graph in which consecutive rows with the same columns are one vertex, if merge.

    vertex of each row; starts, neighbours and weights of vertices.
    """

def row_part(
    indptr: npt.NDArray[np.int64],
    indices: npt.NDArray[np.int32],
    data: npt.NDArray[Any],  # float64 or float32
    start: int,
    size: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[Any]]:
    """Return the principal submatrix of `size` rows around row `start`: indptr, indices, data.

    Fewer rows where no more are connected. InvalidInputError: start is no row, indptr does not
    ascend, or a column is no row.
    """

def slice_padding(indptr: npt.NDArray[np.int64], slice: int, most: int) -> float:
    """Return what slices as wide as their longest row hold over the entries of rows."""

def parse_entries(
    text: npt.NDArray[np.uint8],
    n_rows: int,
    n_columns: int,
    row: npt.NDArray[np.int32],
    col: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64] | None,
    next: int,
) -> int:
    """Parse lines of row, column and value into arrays from place `next` on; return their number.

    Numbers count from 1 in the text, from 0 in the arrays. -1: a line is something else.
    """

def parse_entries_of_file(
    file: int,
    begin: int,
    end: int,
    n_rows: int,
    n_columns: int,
    row: npt.NDArray[np.int32],
    col: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64] | None,
) -> int:
    """Parse the bytes of a file from begin to end, which each core reads for itself, as above.

    file: its descriptor. The last line may lack its end. -1 also where lines are very long.
    """

def rows_of_entries(
    row: npt.NDArray[np.int32],
    col: npt.NDArray[np.int32],
    values: npt.NDArray[np.float64],
    n: int,
    mirror: bool,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.float64]] | None:
    """Return indptr, indices and data of entries in any order; None where one is there twice.

    mirror: an entry off the diagonal stands for its mirror image, too.
    """

def digest(bytes: npt.NDArray[np.uint8]) -> tuple[int, int]:
    """Return 128 bits by which arrays are told apart."""

def cuda_runtime() -> str:
    """Return the version of CUDA's runtime in the extension, such as 13.0; "" without CUDA."""

def available_cores() -> int:
    """Return the cores that this process may use, by affinity and control group."""

def cuda_built() -> bool:
    """Return whether the extension was compiled with CUDA."""

def gpus() -> list[GpuInfo]:
    """Return the GPUs there are; empty without a driver or without CUDA.

    Never raises, and starts nothing on the GPUs.
    """

def gpu_free_bytes(index: int) -> int:
    """Return the memory of a GPU that is free now. Starts CUDA on that GPU."""

def gpu_is_started(index: int) -> bool:
    """Return whether CUDA runs on a GPU in this process; starts nothing."""

def gpu_note() -> str:
    """Return why gpus() is empty, "" where it is not."""

def peer_problem(gpus: list[int]) -> str:
    """Return the first pair without native atomics on one another's memory, "" if none."""

def set_kernel_compiler(library: str, caches: list[str], shipped: str) -> None:
    """Say where GPU kernels come from that are not built in; before the first system is made.

    `library`: path of the compiler's library, "" for one that the system finds. `caches`: the
    folders that keep what it has compiled. `shipped`: the folder of kernels that came with
    the package, which are taken first, "" for none.
    """

def ship_kernels(architecture: str, folder: str) -> int:
    """Compile the kernels of usual solves, as for "sm_90", into a folder; return how many."""

def kernels_compiling() -> int:
    """Return how many kernels for GPUs are compiled right now."""

def kernel_seconds() -> float:
    """Return the seconds in which some thread has waited for a compiler of kernels until now."""

def kernels_compiled() -> bool:
    """Return whether GPU kernels are compiled when they are first used; else they are built in."""

def kernel_compiler() -> str:
    """Return name, version and path of their compiler, "" where they are built in."""

def start_nvshmem(team: Any, library: str, gpu: int, bytes: int) -> None:
    """Start NVSHMEM in a thread of its own, unless it runs; all members call it together."""

def await_nvshmem() -> None:
    """Return once NVSHMEM has started, if it was; raise what that raised."""

class Probe:
    """Messages between PEs, timed inside a kernel. PEs 2 k and 2 k + 1 are a pair."""

    def __init__(
        self,
        pes: int,
        blocks: int,  # of each PE; each exchanges with the same block of the partner
        bytes: int,  # the most that the messages of a window may have together
        pe: int = ...,  # the one in this process; -1: all of them
        gpus: list[int] = ...,  # one per PE; empty: CPU threads
        threads: int = ...,  # of a block on a GPU
        place: str = ...,  # of the memory of PEs on GPUs: "device" or "pinned"
    ) -> None: ...
    def address(self) -> tuple[int, int]: ...  # where the memory of this process is
    def connect(self, addresses: list[tuple[int, int]]) -> None: ...  # of all PEs, in order
    def leave(self) -> None: ...  # ends a run that waits in another thread
    def disturbances(self) -> int: ...  # in the last run, threads that lost their core
    def run(
        self,
        way: str,  # "store-thread", "store-warp", "store-block", "bulk", "packets", "get"
        mode: str,  # "single", "window", "send", "receive", "flag", "allreduce", "fence"
        bytes: int,
        messages: int,
        rounds: int,  # that one time is of
        warm_ups: int,
        repeats: int,
        wait_limit: float,
    ) -> list[float]: ...  # seconds; empty where PE 0 is in another process
    # Of all PEs one after another, the seconds of each repeat: of all of it, then, behind these, of
    # waiting and moving tiles.
    def exchange(
        self,
        bytes: list[int],  # from PE p to PE q, at [p * pes + q]
        warm_ups: int,
        repeats: int,
        wait_limit: float,
    ) -> list[float]: ...
    def multiply(
        self,
        tile: int,  # rows of a tile of the matrices
        puts: bool,
        overlapped: bool,
        local: bool,  # nothing travels
        warm_ups: int,
        repeats: int,
        wait_limit: float,
    ) -> list[float]: ...

class HostProduct:
    """A product of matrices in tiles on GPUs, whose copies and kernels the host drives."""

    def __init__(self, gpus: list[int], most_rows: int) -> None: ...  # a GPU for each PE
    def multiply(  # as Probe.multiply
        self,
        tile: int,  # a multiple of 32
        puts: bool,
        overlapped: bool,
        local: bool,
        warm_ups: int,
        repeats: int,
        wait_limit: float,
    ) -> list[float]: ...

class HostWay:
    """A way to another GPU in which the host takes part, timed by the host."""

    def __init__(
        self,
        way: str,  # "copy", "copy-graph", "managed", "pinned", "proxy", "nccl", "ipc", "nvshmem-p"
        gpus: list[int],  # the sender's, the receiver's; NVSHMEM: that of this process
        bytes: int,  # of the largest window
        library: str = ...,  # of NCCL, of NVSHMEM
        handle: bytes = ...,  # of the memory of another process; what nvshmem_id has given
        kernels: str = ...,  # NVSHMEM: the file with the kernel
        rank: int = ...,  # NVSHMEM: of this process
    ) -> None: ...
    def times(
        self,
        mode: str,  # "single", "window", "send", "receive", "launch", "queue"
        bytes: int,
        messages: int,
        warm_ups: int,
        repeats: int,
        wait_limit: float,
    ) -> list[float]: ...

def nvshmem_id(library: str = ...) -> bytes:
    """Return an identity by which two processes of NVSHMEM find one another."""

class IpcMemory:
    """Memory of a GPU that other processes reach while this object lives."""

    def __init__(self, gpu: int, bytes: int) -> None: ...
    def handle(self) -> bytes: ...

class Stencil(TypedDict):
    """How a run ended, and how its grid lay on the PEs."""

    reason: str
    iterations: int
    exchanges: int
    checks: int
    update: float  # largest change of a point when last measured; NaN: not measured
    seconds: float
    engine: str
    pes: int
    blocks: int
    threads: int
    pe_grid: str  # parts along each axis
    block_grid: str
    halo_steps: int
    thickness: int
    check_every: int
    tile_points: int
    halo_points: int
    pe_halo_points: int
    halo: str  # "packets", "values", "none"
    in_fast_memory: bool
    sweep: str  # "wavefront", "registers", "registers_3d", "time_tiles", "specialized_blocks"
    rows: int  # of a thread, in registers; of 3-D tiles, planes
    columns: int
    boundary_blocks: int  # specialized, the first of the blocks; 0 in other sweeps

def jacobi(
    start: npt.NDArray[Any],  # 2 or 3 dimensions, float64 or float32, contiguous, as all of them
    source: npt.NDArray[Any] | None,
    out: npt.NDArray[Any],
    periodic: list[bool],
    options: dict[str, Any],
    progress: Callable[[int, float], bool] | None,
) -> Stencil: ...
def jacobi_by_boxes(
    shape: Sequence[int],
    single: bool,  # float32, else float64
    # Functions of the first and the behind-last number of points along each axis; they return
    # contiguous arrays: values, and memory for the result, which is asked for once.
    start: Callable[[list[int], list[int]], npt.NDArray[Any]],
    source: Callable[[list[int], list[int]], npt.NDArray[Any]] | None,
    room: Callable[[list[int], list[int]], npt.NDArray[Any]],
    periodic: list[bool],
    options: dict[str, Any],
    progress: Callable[[int, float], bool] | None,
    team: Any,  # cpu_processes, nvshmem: rank, size, all_gather, gather
) -> Stencil: ...
def fits_registers_3d(
    shape: Sequence[int],
    periodic: Sequence[bool],
    single: bool,
    source: bool,
    pes: int,
    blocks: int,  # multiprocessors of each
) -> bool:
    """Return whether registers hold the values of a grid of three dimensions."""

def simulate(
    resource: npt.NDArray[np.int32],
    busy: npt.NDArray[np.int64],  # picoseconds, as all times
    latency: npt.NDArray[np.int64],
    from_: npt.NDArray[np.int32],
    to: npt.NDArray[np.int32],
    edge: npt.NDArray[np.uint8],
    role: npt.NDArray[np.uint8],
    operand: npt.NDArray[np.int32],
    nic: npt.NDArray[np.int32],
    threshold: npt.NDArray[np.int32],
    rounds: int,
    entries: int,
    spill: int,
    record: bool,
) -> dict[str, Any]:
    """Return what a run gives, or "waits", "back_to" and "card" where the program cannot end."""

def jacobi_reference(
    start: npt.NDArray[Any],
    source: npt.NDArray[Any] | None,
    out: npt.NDArray[Any],
    periodic: list[bool],
    iterations: int,
) -> None: ...
def run_program(
    kernel: int,
    heaps: list[int],
    tables: list[int],
    wait_limit: float,
    progress: Callable[[int, float], bool] | None,
    blocks: int = 1,  # of each PE
) -> tuple[float, bool]: ...

class GpuProgram:
    """A compiled program on GPUs, with the memory of its PEs."""

    blocks: int
    # Each copy: PE, offset, pitch, address, its pitch, width, rows.
    def load(self, copies: list[list[int]]) -> None: ...
    def store(self, copies: list[list[int]]) -> None: ...
    # Seconds, whether it was stopped, results, faults.
    def run(
        self,
        scalars: list[int],
        results: int,
        wait_limit: float,
        progress: Callable[[int, float], bool] | None,
    ) -> tuple[float, bool, list[int], list[int]]: ...

def make_gpu_program(
    source: str,
    devices: list[int],
    heap_bytes: int,
    leave_offset: int,
    threads: int,
    thread_bytes: int,
    most_blocks: int,
) -> GpuProgram: ...

class HostedProgram:
    """The same driven by the host."""

    def load(self, copies: list[list[int]]) -> None: ...
    def store(self, copies: list[list[int]]) -> None: ...
    def prepare(
        self, segments: list[tuple[list[list[int]], int]], arguments: bytes, size: int
    ) -> None: ...
    def run(self, wait_limit: float) -> tuple[float, list[int]]: ...

def make_hosted_program(
    source: str, kernels: int, devices: list[int], heap_bytes: int, threads: int
) -> HostedProgram: ...
