"""`cpufree model`: measured, fitted, validated, shown and used, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from cli_runner import Run, runner
from synthetic_samples import LOGGOP, SIZES, rows_of, samples_of

from cpufree.machine.communication import write_ways
from cpufree.model import options as model_options
from cpufree.model.fit import fit
from cpufree.model.samples import read_samples, write_samples

pytestmark = pytest.mark.usefixtures("few_replicates")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs the command line with given words."""
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with samples, and with a machine file of them."""
    made = tmp_path_factory.mktemp("model")
    rows = rows_of(LOGGOP, "a", noise=0.02) + rows_of(
        LOGGOP, "b", noise=0.02, seed=9, modes=("single",)
    )
    write_samples(made / "s.jsonl", samples_of(rows))
    write_ways(made / "m.json", fit(read_samples(made / "s.jsonl")))
    return made


@pytest.mark.parametrize("table", model_options.TABLES)
def test_commands_have_the_options_of_the_schema(
    run: Run, monkeypatch: pytest.MonkeyPatch, table: str
) -> None:
    command = table.removeprefix("model_").replace("_", "-")
    monkeypatch.setenv("COLUMNS", "400")
    text = run("model", command, "--help").out
    for option in model_options.TABLES[table]:
        assert option.spelling in text and option.help in text, option.name


def test_measuring_fitting_and_validating_go_together(run: Run, tmp_path: Path) -> None:
    samples, machine = tmp_path / "s.jsonl", tmp_path / "m.json"
    sizes = "8,24,64,96,256,384,1024,1536,4096,6144,16384"
    words = ("--ways", "pipe,socket", "--quick", "--sizes", sizes)
    measured = run("model", "measure", *words, "-o", samples)
    assert measured.code == 0
    assert "pipes between two processes" in measured.out
    found = read_samples(samples)
    assert found.held_out == (24, 96, 384, 1536, 6144)
    assert found.command == f"cpufree model measure {' '.join(words)} --out {samples}"
    fitted = run("model", "fit", samples, "-o", machine, "--plot", tmp_path / "fit.png")
    assert fitted.code == 0 and "95 % interval" in fitted.out
    content = json.loads(machine.read_text())
    assert content["provenance"]["sha256"] == found.digest
    assert content["ways"]["pipe"]["parameters"]["o_send"]["unit"] == "s"
    validated = run("model", "validate", machine, samples, "--json", tmp_path / "v.json")
    report = json.loads((tmp_path / "v.json").read_text())
    assert validated.code == (0 if report["passed"] else 4)
    assert {check["way"] for check in report["checks"]} == {"pipe", "socket"}
    assert ("NOT passed" in validated.out) != report["passed"]


def test_a_fit_that_holds_is_validated(run: Run, folder: Path) -> None:
    ended = run("model", "validate", folder / "m.json", folder / "s.jsonl", "--quiet")
    assert ended.code in (0, 4)  # a and b are the same way: where they cross is noise
    assert len(ended.out.splitlines()) == 1


def test_a_fit_that_does_not_hold_ends_with_code_4(run: Run, folder: Path, tmp_path: Path) -> None:
    slower = [
        dataclasses.replace(row, seconds=tuple(1.5 * t for t in row.seconds))
        for row in rows_of(LOGGOP, "a")
    ]
    write_samples(tmp_path / "s.jsonl", samples_of(slower))
    ended = run("model", "validate", folder / "m.json", tmp_path / "s.jsonl")
    assert ended.code == 4
    assert "NOT passed: " in ended.out


def test_show_tells_parameters_and_what_is_not_identifiable(run: Run, folder: Path) -> None:
    text = run("model", "show", folder / "m.json").out
    assert "L" in text and "us" in text
    assert "not identifiable" in text and "needs windows of messages" in text
    assert "counts once" in text


def test_predictions_come_with_their_interval(run: Run, folder: Path) -> None:
    words = ("model", "predict", "--machine", folder / "m.json", "--way", "a", "--bytes", "8,1000")
    report = json.loads(run(*words, "--json", "-").out)
    assert report["bytes"] == [8, 1000]
    low, time, high = (report[key] for key in ("low", "seconds", "high"))
    assert all(a < b < c for a, b, c in zip(low, time, high, strict=True))
    assert "1 000 B" in run(*words).out


def test_advice_ranks_five_changes_and_has_the_means_of_the_paper(run: Run) -> None:
    report = json.loads(run("model", "advise", "--json", "-").out)
    assert len(report["priorities"]) == 5
    assert report["priorities"][0]["what"] == "batch messages"
    assert (round(report["fixed"], 2), round(report["scaled"], 2)) == (1.22, 2.66)


@pytest.mark.parametrize(
    "suffix", ["png", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("svg", "pdf"))]
)
@pytest.mark.thorough
def test_plots_are_written_in_every_format(
    run: Run, folder: Path, tmp_path: Path, suffix: str
) -> None:
    begins = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
    machine, samples = folder / "m.json", folder / "s.jsonl"
    for name, words in {
        "show": ("show", machine),
        "summit": ("show", "summit-2020"),
        "validate": ("validate", machine, samples),
    }.items():
        path = tmp_path / f"{name}.{suffix}"
        assert run("model", *words, "--plot", path, "-q").code in (0, 4)
        assert path.read_bytes().startswith(begins[suffix])


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("measure", "--ways", "pip", "-o", "o.jsonl"), 3, "did you mean pipe"),
        (("measure", "--sizes", "8,x", "-o", "o.jsonl"), 2, "--sizes is '8,x': give whole numbers"),
        (("measure", "--sizes", "0", "-o", "o.jsonl"), 3, "messages of 0 B"),
        (("measure", "--sizes", "99999999999", "-o", "o.jsonl"), 3, "cannot send messages of 9999"),
        (("measure", "-o", "none/o.jsonl"), 3, "there is no directory 'none'"),
        (("fit", "s.jsonl", "-o", "o.json", "--plot", "o.gif"), 3, "must end in one of .png"),
        (("fit", "s.jsonl", "-o", "s.jsonl"), 3, "holds what is to be read"),
        (("fit", "few.jsonl", "-o", "o.json"), 3, "way a, mode single: 4 sizes"),
        (("fit", "cut.jsonl", "-o", "o.json"), 3, "was the file cut short?"),
        (("validate", "m.json", "few.jsonl"), 3, "no size of a known way is held out"),
        (("show", "nobody.json"), 3, "no machine 'nobody.json'"),
        (("predict", "--machine", "m.json", "--way", "c", "--bytes", "8"), 3, "no way 'c'"),
        (("predict", "--machine", "m.json", "--way", "a", "--bytes", "0"), 3, "at least 1"),
        (("predict", "--way", "host-put", "--bytes", "8;9"), 2, "--bytes is '8;9'"),
        (("advise", "--machine", "m.json"), 2, "--cpu is missing"),
        (("advise", "--launch", "-1"), 2, "--launch"),
        (("advise", "--share", "1"), 3, "give one above 0 and below 1"),
    ],
)  # fmt: skip
def test_wrong_words_and_files_are_told_and_nothing_is_written(
    run: Run,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    text = (folder / "s.jsonl").read_text()
    (folder / "cut.jsonl").write_text(text[: len(text) // 2])
    write_samples("few.jsonl", samples_of(rows_of(LOGGOP, "a", sizes=SIZES[:4])))
    before = sorted(file.name for file in folder.iterdir())
    ended = run("model", *words)
    assert ended.code == code
    assert message in " ".join(ended.err.split())
    assert sorted(file.name for file in folder.iterdir()) == before
