"""Mutated files: never a crash, never a hang, always a CpufreeError or a right answer.

The files are loaded in a process of their own (this file run as a program), so that a crash or a
hang of a reader fails the test instead of ending it.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

from cpufree.errors import CpufreeError
from cpufree.matrix.cache import write_cache
from cpufree.matrix.load import as_csr, load_matrix
from cpufree.matrix.row_permutation import RowPermutation
from cpufree.matrix.save import save_matrix

SECONDS = 400
MEGABYTES = 500
NASTY_NUMBERS = (
    b"0", b"-1", b"99999999999999999999", b"2147483648", b"1e999", b"nan", b"-inf", b"", b"1.5",
    b"2,5", b"1.0D+05", b"+3", b"1-5", b"1.2.3", b"1e5e5", b"0x10", b"\x00", b"1 7", b"--1", b".",
    b".5-101", b"1.5-10",
)  # fmt: skip


def example() -> sp.csr_array:
    """A symmetric positive definite matrix, 12 x 12, with values of many digits."""
    rng = np.random.default_rng(7)
    half = rng.standard_normal((12, 12)) * (rng.random((12, 12)) < 0.15)
    return sp.csr_array(half + half.T + 10 * np.eye(12))


def matrix_market(A: object, field: str | None = None, symmetry: str = "general") -> bytes:
    """Return a Matrix Market file."""
    stream = io.BytesIO()
    scipy.io.mmwrite(stream, A, field=field, symmetry=symmetry)
    return stream.getvalue()


def originals(directory: Path) -> dict[str, bytes]:
    """Return a valid file of each kind, by a name that ends in its suffix."""
    A = example()
    for suffix in (".npz", ".cpufree"):
        save_matrix(directory / f"a{suffix}", A)
    parts = RowPermutation.of(np.arange(12, dtype=np.int32) % 3, 3, None)
    write_cache(directory / "parts.cpufree", as_csr(A), parts)
    np.save(directory / "a.npy", A.toarray())
    scipy.io.savemat(directory / "plain.mat", {"A": sp.csc_array(A)})
    scipy.io.savemat(
        directory / "packed.mat", {"Problem": {"A": sp.csc_array(A)}}, do_compression=True
    )
    with tarfile.open(directory / "a.tar.gz", "w:gz") as tar:
        text = matrix_market(A)
        member = tarfile.TarInfo("a/a.mtx")
        member.size = len(text)
        tar.addfile(member, io.BytesIO(text))
    scipy.io.hb_write(directory / "a.rua", sp.csc_matrix(A))
    scipy.io.savemat(directory / "old.mat", {"A": sp.csc_array(A)}, format="4")
    others = ("plain.mat", "packed.mat", "old.mat", "a.tar.gz", "a.rua")
    whole = sp.csr_array((np.ones(A.nnz, dtype=int), A.indices, A.indptr), shape=A.shape)
    return {
        "general.mtx": matrix_market(A),
        "symmetric.mtx": matrix_market(A, symmetry="symmetric"),
        "integer.mtx": matrix_market(whole, symmetry="symmetric"),
        "pattern.mtx": matrix_market(A, field="pattern"),
        "array.mtx": matrix_market(A.toarray()),
        "half.mtx": matrix_market(A.toarray(), symmetry="symmetric"),
        "packed.mtx.gz": gzip.compress(matrix_market(A, symmetry="symmetric"), mtime=0),
        "packed.mtx.bz2": bz2.compress(matrix_market(A, symmetry="symmetric")),
        "parts.cpufree": (directory / "parts.cpufree").read_bytes(),
        **{name: (directory / name).read_bytes() for name in others},
        **{f"a{s}": (directory / f"a{s}").read_bytes() for s in (".npz", ".npy", ".cpufree")},
    }


def flip_bits(data: bytes, rng: np.random.Generator) -> bytes:
    array = bytearray(data)
    for _ in range(rng.integers(1, 6)):
        array[rng.integers(len(array))] ^= 1 << int(rng.integers(8))
    return bytes(array)


def truncate(data: bytes, rng: np.random.Generator) -> bytes:
    return data[: rng.integers(len(data))]


def cut_out(data: bytes, rng: np.random.Generator) -> bytes:
    begin = int(rng.integers(len(data)))
    return data[:begin] + data[begin + int(rng.integers(1, 40)) :]


def repeat_part(data: bytes, rng: np.random.Generator) -> bytes:
    begin = int(rng.integers(len(data)))
    return data[: begin + int(rng.integers(1, 40))] + data[begin:]


def overwrite(data: bytes, rng: np.random.Generator) -> bytes:
    begin, length = int(rng.integers(len(data))), int(rng.integers(1, 16))
    return (data[:begin] + rng.bytes(length) + data[begin + length :])[: len(data)]


def append_garbage(data: bytes, rng: np.random.Generator) -> bytes:
    return data + rng.bytes(int(rng.integers(1, 64)))


def swap_lines(data: bytes, rng: np.random.Generator) -> bytes:
    lines = data.split(b"\n")
    a, b = rng.integers(len(lines), size=2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def mangle_number(data: bytes, rng: np.random.Generator) -> bytes:
    numbers = list(re.finditer(rb"[-+.0-9eE]+", data))
    chosen = numbers[rng.integers(len(numbers))]
    nasty = NASTY_NUMBERS[rng.integers(len(NASTY_NUMBERS))]
    return data[: chosen.start()] + nasty + data[chosen.end() :]


def mangle_end(data: bytes, rng: np.random.Generator) -> bytes:
    """Cut a text off near its end, or leave the last line end out, and add a few characters."""
    kept = data.rstrip() if rng.random() < 0.5 else data[: len(data) - int(rng.integers(60))]
    tails = (
        b" ",
        b"\t",
        b"\r",
        b"\n",
        b" \n ",
        b"\r\n",
        b"infinit",
        b" nan",
        b"-",
        b"e",
        b".",
        b"1",
    )
    return kept + b"".join(tails[k] for k in rng.integers(len(tails), size=rng.integers(1, 4)))


Mutation = Callable[[bytes, np.random.Generator], bytes]
ON_BYTES: tuple[Mutation, ...] = (
    flip_bits, truncate, cut_out, repeat_part, overwrite, append_garbage,
)  # fmt: skip
ON_TEXT: tuple[Mutation, ...] = (*ON_BYTES, swap_lines, mangle_number, mangle_number, mangle_end)


PACKERS: dict[str, tuple[Callable[..., bytes], Callable[[bytes], bytes]]] = {
    "gz": (gzip.compress, gzip.decompress),
    "bz2": (bz2.compress, bz2.decompress),
}


def mutate(
    name: str, data: bytes, rng: np.random.Generator, mutation: Mutation | None = None
) -> bytes:
    """Return a mutated file; of a compressed one, either the file or the text in it."""
    if name.endswith(".tar.gz"):
        return gzip.compress(mutate("archive.tar", gzip.decompress(data), rng), mtime=0)
    pack, unpack = PACKERS.get(name.rpartition(".")[2], (None, None))
    if pack is not None and unpack is not None and (mutation or rng.random() < 0.5):
        return pack(mutate("text.mtx", unpack(data), rng, mutation))
    if mutation is not None:
        return mutation(data, rng)
    mutations = ON_TEXT if name.endswith((".mtx", ".rua")) else ON_BYTES
    return mutations[rng.integers(len(mutations))](data, rng)


def load_all(directory: Path) -> None:
    """Load each file of a directory; print its name, then what came of it, as lines of JSON."""
    import resource

    load_matrix(directory / "warm-up.mtx")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for file in sorted((directory / "mutated").iterdir()):
        print(json.dumps({"begin": file.name}), flush=True)
        outcome: dict[str, object] = {"end": file.name, "error": None}
        try:
            A = load_matrix(file)
            C = as_csr(file)
            assert np.array_equal(A.toarray(), with_zeros(C.to_scipy().toarray()), equal_nan=True)
            outcome["matrix"] = A.toarray().tolist()
            outcome["dtype"] = str(A.dtype)
        except CpufreeError as error:
            outcome["error"] = str(error)
        except Exception as error:  # all else is a finding, told with the file's name
            outcome["escaped"] = f"{type(error).__name__}: {error}"
        print(json.dumps(outcome), flush=True)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps({"megabytes": (after - before) / 1024}), flush=True)


def with_zeros(dense: np.ndarray) -> np.ndarray:
    """Return -0.0 as 0.0: whether a zero is stored is no matter of value."""
    return dense + 0.0


def run_loader(
    directory: Path,
    count: int,
    seed: int,
    chosen: Callable[[str], bool] = lambda name: True,
    mutation: Mutation | None = None,
) -> tuple[list[dict], dict[str, bytes]]:
    """Mutate each original that is chosen `count` times, load all; return outcomes and files."""
    files = {name: data for name, data in originals(directory).items() if chosen(name)}
    (directory / "warm-up.mtx").write_bytes(files["general.mtx"])
    (directory / "mutated").mkdir()
    mutants = {}
    for which, (name, data) in enumerate(files.items()):
        rng = np.random.default_rng([seed, which])
        for k in range(count):
            mutants[f"{k:05}-{name}"] = mutate(name, data, rng, mutation)
    for name, data in mutants.items():
        (directory / "mutated" / name).write_bytes(data)
    done = subprocess.run(
        [sys.executable, __file__, str(directory)], capture_output=True, text=True, timeout=SECONDS
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    last = next((line["begin"] for line in reversed(lines) if "begin" in line), "none")
    assert done.returncode == 0, f"ended with {done.returncode} at {last}: {done.stderr[-2000:]}"
    assert lines[-1]["megabytes"] < MEGABYTES
    outcomes = [line for line in lines if "end" in line]
    assert len(outcomes) == len(mutants)
    return outcomes, mutants


def unpacked(name: str, data: bytes) -> bytes:
    """Return the text in a file that may be compressed."""
    kind = name.rpartition(".")[2]
    return PACKERS[kind][1](data) if kind in PACKERS else data


def parse_slowly(text: bytes) -> np.ndarray:
    """Read a Matrix Market file by the letter of the format, number by number."""
    banner, *lines = text.decode("latin-1").replace("\r\n", "\n").split("\n")
    form, field, symmetry = banner.lower().split()[2:]
    body = [line.split() for line in lines if line.strip() and not line.lstrip().startswith("%")]
    sizes, *body = body
    n = int(sizes[0])
    A = np.zeros((n, n))
    if form == "array":
        places = [(i, j) for j in range(n) for i in range(0 if symmetry == "general" else j, n)]
        words = [word for line in body for word in line]
    else:
        places = [(int(line[0]) - 1, int(line[1]) - 1) for line in body]
        words = [line[2] if field != "pattern" else "1" for line in body]
        assert all(len(line) == (2 if field == "pattern" else 3) for line in body)
        assert len(body) == int(sizes[2])
    assert len(places) == len(words)
    for (i, j), word in zip(places, words, strict=True):
        mantissa, point, tail = word.upper().replace("D", "E").partition(".")
        if re.fullmatch(r"[0-9]*[+-][0-9]{3}", tail):  # as Fortran prints three digits
            tail = f"{tail[:-4]}E{tail[-4:]}"
        value = float(mantissa + point + tail)
        A[i, j] += value
        if symmetry != "general" and i != j:
            A[j, i] += value
    return A


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict], dict[str, bytes]]:
    """The outcomes of 50 mutations of each of 17 files, and the mutated files."""
    return run_loader(tmp_path_factory.mktemp("fuzz"), count=50, seed=1)


def outcomes_of(loaded: tuple[list[dict], dict[str, bytes]], *suffixes: str) -> list[dict]:
    return [line for line in loaded[0] if line["end"].endswith(suffixes)]


def test_mutated_files_raise_nothing_but_cpufree_errors(loaded) -> None:
    assert [line for line in loaded[0] if "escaped" in line] == []


def test_errors_of_mutated_files_name_the_file(loaded) -> None:
    assert [x for x in loaded[0] if x["error"] and x["end"] not in x["error"]] == []


def test_mutations_are_worth_their_name(loaded) -> None:
    # Most do harm and are refused, some harm nothing.
    refused = sum(line["error"] is not None for line in loaded[0])
    assert 0.5 * len(loaded[0]) < refused < len(loaded[0])


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".mtx.bz2"])
def test_mutated_text_that_loads_means_what_it_says(loaded, suffix: str) -> None:
    accepted = [x for x in outcomes_of(loaded, suffix) if x["error"] is None]
    assert accepted
    for line in accepted:
        data = loaded[1][line["end"]]
        expected = parse_slowly(unpacked(line["end"], data))
        assert np.allclose(line["matrix"], expected, rtol=1e-15, equal_nan=True), line["end"]


@pytest.mark.parametrize("suffix", [".npz", ".cpufree"])
def test_mutated_checksummed_file_loads_only_unchanged(loaded, suffix: str) -> None:
    for line in outcomes_of(loaded, suffix):
        if line["error"] is None:
            assert np.array_equal(line["matrix"], example().toarray()), line["end"]


@pytest.mark.parametrize(
    "name",
    [
        "general.mtx",
        "symmetric.mtx",
        "array.mtx",
        "half.mtx",
        "packed.mtx.gz",
        "a.npz",
        "a.npy",
        "a.cpufree",
        "parts.cpufree",
        "plain.mat",
        "packed.mat",
        "old.mat",
        "a.tar.gz",
        "a.rua",
    ],
)
def test_unmutated_files_load(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(originals(tmp_path)[name])
    assert np.array_equal(load_matrix(tmp_path / name).toarray(), example().toarray())


def test_ends_of_texts_that_are_mangled_on_purpose_crash_nothing(tmp_path: Path) -> None:
    def texts(name: str) -> bool:
        return name.endswith((".mtx", ".mtx.gz", ".mtx.bz2"))

    outcomes, mutants = run_loader(tmp_path, 40, 99, texts, mangle_end)
    assert [line for line in outcomes if "escaped" in line] == []
    for line in outcomes:
        if line["error"] is None:
            expected = parse_slowly(unpacked(line["end"], mutants[line["end"]]))
            assert np.allclose(line["matrix"], expected, rtol=1e-15, equal_nan=True), line["end"]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 7))
def test_many_mutated_files(tmp_path: Path, seed: int) -> None:
    loaded = run_loader(tmp_path, count=400, seed=seed)
    test_mutated_files_raise_nothing_but_cpufree_errors(loaded)
    test_errors_of_mutated_files_name_the_file(loaded)
    for suffix in (".mtx", ".mtx.gz", ".mtx.bz2"):
        test_mutated_text_that_loads_means_what_it_says(loaded, suffix)
    for suffix in (".npz", ".cpufree"):
        test_mutated_checksummed_file_loads_only_unchanged(loaded, suffix)


if __name__ == "__main__":
    load_all(Path(sys.argv[1]))
