"""`cpufree model`: the commands. What they do is in `cpufree.model`, loaded when needed."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from cpufree.cli import display
from cpufree.cli.commands import (
    EXIT_ENGINE,
    PLOT_SUFFIXES,
    check_can_write,
    check_different,
    check_not_read,
    stage,
    stage_of_steps,
    write_json,
)
from cpufree.cli.option_types import UsageError, refuse, with_options
from cpufree.cli.run_record import flags, run_record
from cpufree.env import preset_shared_gpus
from cpufree.model import options as model_options
from cpufree.options.schema import Option

if TYPE_CHECKING:
    from cpufree.model.advice import Roles
    from cpufree.model.measure import Plan
    from cpufree.model.samples import Samples

app = typer.Typer(
    name="model",
    no_args_is_help=True,
    rich_markup_mode="rich",
    help="Measure, fit, validate and use a model of what messages cost.",
)
Given = dict[str, Any]
SamplesArgument = Annotated[
    str, typer.Argument(metavar="SAMPLES", help="A file that measure has written.")
]
MachineArgument = Annotated[
    str, typer.Argument(metavar="MACHINE", help="A machine file, or the name of a published one.")
]
MEASURE_EPILOG = """
[bold]Examples[/bold]

  cpufree model measure --quick --out samples.jsonl

  cpufree model fit samples.jsonl --out machine.json --plot fit.png

  cpufree model validate machine.json samples.jsonl

  cpufree model predict --machine machine.json --way pipe --bytes 100,1000
"""


def outputs(given: Given, read: tuple[str, ...] = ()) -> Console:
    """Check the files to write; return the console of the report."""
    check_can_write(given["json"])
    check_can_write(given.get("out"))
    check_can_write(given.get("plot"), PLOT_SUFFIXES)
    written = (given.get("out"), given.get("plot"), given["json"])
    check_different(*written)
    check_not_read(written, read)
    return display.report_console(stderr=given["json"] == "-", quiet=given["quiet"])


def finish(given: Given, words: tuple[str, ...], table: tuple[Option, ...], content: Given) -> None:
    """Write the report in JSON where it is asked for."""
    if given["json"]:
        write_json(given["json"], {**run_record(("model", *words), table, given), **content})


def end(given: Given, line: str) -> None:
    """Say in one line how it ended, however little is to be said."""
    display.report_console(stderr=given["json"] == "-").print(line, highlight=False, markup=False)


def sizes_of(option: Option, text: str) -> list[int]:
    """Return the sizes of a list with commas.

    Raises:
        UsageError: a word is no whole number.
    """
    for word in text.split(","):
        if not (word.strip().isascii() and word.strip().isdigit() and len(word) <= 18):
            raise refuse(option, text, "give whole numbers with commas between, such as 8,1024")
    return [int(word) for word in text.split(",")]


@app.command("measure", epilog=MEASURE_EPILOG)
@with_options(model_options.MEASURE)
def measure_command(given: Given) -> None:
    """Measure the ways in which two PEs of this machine can exchange data."""
    import dataclasses

    from cpufree.cli.model import report as model_report
    from cpufree.model import measure
    from cpufree.model.samples import write_samples
    from cpufree.model.ways.catalog import find_ways

    paper = outputs(given)
    names = tuple(word.strip() for word in (given["ways"] or "").split(",") if word.strip())
    plan = measure.QUICK if given["quick"] else measure.Plan()
    plan = dataclasses.replace(plan, seed=given["seed"])
    if given["sizes"]:
        plan = measure.with_sizes(plan, sizes_of(model_options.SIZES, given["sizes"]))
    table = model_options.MEASURE
    asked = {o.name: given[o.name] for o in table if o.required or given[o.name] != o.default}
    command = shlex.join(["cpufree", "model", "measure", *flags(table, asked)])
    preset_shared_gpus()
    ways = find_ways(names)
    notes = Console(stderr=True, highlight=False, quiet=given["quiet"])
    found = stage_of_steps(
        notes,
        "measuring",
        lambda progress: measure.measure(ways, plan, command, progress),
        lambda samples: f"{len(samples.rows)} series",
    )
    if not names:
        found = stage(
            notes,
            "measuring patterns",
            lambda: with_patterns(found, given["halo"], plan),
            lambda samples: f"{len(samples.patterns)} series",
        )
    write_samples(given["out"], found)
    paper.print(model_report.samples_report(found, {way.name: way.what for way in ways}))
    there = found.ways()
    finish(given, ("measure",), table, {"ways": there, "missing": dict(found.missing)})
    end(given, f"samples of {', '.join(there) or 'no way'} in {given['out']}")


def with_patterns(found: Samples, matrix: str, plan: Plan) -> Samples:
    """Return samples with those of patterns, halos of a matrix among them."""
    import dataclasses

    from cpufree.cli.model.pattern_halos import halos_of
    from cpufree.model.patterns.measure import measure_patterns

    patterns, lacking = measure_patterns({matrix: halos_of(matrix)}, plan.pattern_seconds)
    missing = {**found.missing, **lacking}
    return dataclasses.replace(found, patterns=tuple(patterns), missing=missing)


@app.command("calibrate")
@with_options(model_options.CALIBRATE)
def calibrate_command(given: Given) -> None:
    """Measure in seconds what engine and GPUs are chosen by; from then on, choices go by it."""
    import dataclasses

    from cpufree import machine
    from cpufree.cli.model import report as model_report
    from cpufree.cli.model.calibrate import measured_solves
    from cpufree.engines import choices, gpus
    from cpufree.machine import files, own_file
    from cpufree.model.calibrate import choices_of

    paper = outputs(given)
    notes = Console(stderr=True, highlight=False, quiet=given["quiet"])
    there, cores = gpus.usable(gpus.find()), choices.available_cores()
    gpu = there[0].name if there else "none"
    path, like = given["out"] or str(own_file(gpu)), machine.like(gpu)
    known = machine.load(like)
    solves = stage(
        notes, "solving", lambda: measured_solves(known), lambda found: f"{len(found)} solves"
    )
    found = choices_of(solves, cores, known)
    name = f"{len(there)} × {gpu}, {cores} cores" if there else f"{cores} cores, no GPU"
    written = {key: files.plain(one) for key, one in found.items()}
    content = {"machine": name, "gpu": gpu, "like": like, "choices": written}
    if not given["out"]:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    files.write(path, content)
    paper.print(model_report.choices_report(found, like))
    if len(there) > 1 and "link.store_rate" not in found:
        paper.print(f"  solves do not tell the rate of the link: that of {like} holds")
    facts = {"file": path, "machine": content, "solves": [dataclasses.asdict(s) for s in solves]}
    finish(given, ("calibrate",), model_options.CALIBRATE, facts)
    end(given, f"choices of {name} in {path}")


@app.command("fit")
@with_options(model_options.FIT)
def fit_command(samples: SamplesArgument, given: Given) -> None:
    """Turn samples into a machine file: curves and LogGOP parameters, with intervals."""
    import dataclasses

    from cpufree.cli.model import report as model_report
    from cpufree.machine.communication import to_dict, write_ways
    from cpufree.model.fit import fit
    from cpufree.model.samples import read_samples

    paper = outputs(given, (samples,))
    read = read_samples(samples)
    found = stage_of_steps(
        Console(stderr=True, highlight=False, quiet=given["quiet"]),
        "fitting",
        lambda progress: fit(read, given["seed"], progress),
        lambda one: f"{len(one.ways)} ways",
    )
    command = shlex.join(["cpufree", "model", "fit", samples, "--seed", str(given["seed"])])
    found = dataclasses.replace(found, provenance={**found.provenance, "fit": command})
    write_ways(given["out"], found)
    paper.print(model_report.machine_report(found))
    if given["plot"]:
        from cpufree.model.plots import draw_fit, save_plot

        save_plot(draw_fit(found, read), given["plot"])
    finish(given, ("fit", samples), model_options.FIT, {"machine": to_dict(found)})
    end(given, f"machine file of {', '.join(found.ways)} in {given['out']}")


@app.command("validate")
@with_options(model_options.VALIDATE)
def validate_command(machine: MachineArgument, samples: SamplesArgument, given: Given) -> None:
    """Hold a machine file against sizes that no fit has seen; the exit code is 4 where it fails."""
    from cpufree.cli.model import report as model_report
    from cpufree.machine.communication import load_ways
    from cpufree.model.samples import read_samples
    from cpufree.model.validate import validate

    paper = outputs(given, (machine, samples))
    found = validate(load_ways(machine), read_samples(samples))
    paper.print(model_report.validation_report(found))
    content = model_report.validation_facts(found)
    finish(given, ("validate", machine, samples), model_options.VALIDATE, content)
    passed, total = sum(found.verdicts), len(found.verdicts)
    verdict = "passed" if found.passed else "NOT passed"
    end(given, f"{verdict}: {passed} of {total} checks are within their limits ({found.told})")
    raise typer.Exit(0 if found.passed else EXIT_ENGINE)


@app.command("show")
@with_options(model_options.SHOW)
def show_command(machine: MachineArgument, given: Given) -> None:
    """Show what a machine file says: parameters with intervals, and what is not known."""
    from cpufree.cli.model import report as model_report
    from cpufree.machine.communication import load_ways, to_dict

    paper = outputs(given, (machine,))
    found = load_ways(machine)
    paper.print(model_report.machine_report(found))
    if given["plot"]:
        from cpufree.model.plots import draw_machine, save_plot

        save_plot(draw_machine(found), given["plot"])
    finish(given, ("show", machine), model_options.SHOW, {"machine": to_dict(found)})
    if given["quiet"]:
        end(given, f"{found.machine}: {', '.join(found.ways) or 'no ways'}")


@app.command("predict")
@with_options(model_options.PREDICT)
def predict_command(given: Given) -> None:
    """Predict the time of messages, with a 95 % interval where the machine file has one."""
    import dataclasses

    from cpufree.cli.model import report as model_report
    from cpufree.machine.communication import load_ways
    from cpufree.model.use import predict

    paper = outputs(given, (given["machine"],))
    sizes = sizes_of(model_options.BYTES, given["bytes"])
    machine = load_ways(given["machine"])
    found = predict(machine, given["way"], sizes, given["pipelined"])
    paper.print(model_report.prediction_report(sizes, found))
    content = {"bytes": sizes, **dataclasses.asdict(found)}
    finish(given, ("predict",), model_options.PREDICT, content)
    if given["quiet"]:
        end(given, ", ".join(display.seconds(float(one)) for one in found.seconds))


def roles_of(given: Given) -> Roles:
    """Return the machine and ways of a projection.

    Raises:
        UsageError: another machine than Summit is given without its ways.
    """
    from cpufree.machine.communication import load_ways
    from cpufree.model.advice import SUMMIT_WAYS, Roles

    names = [given["cpu"], given["host"], given["device"]]
    if given["machine"] == model_options.SUMMIT:
        names = [name or preset for name, preset in zip(names, SUMMIT_WAYS, strict=True)]
    for name, option in zip(names[:2], ("--cpu", "--host"), strict=True):
        if not name:
            raise UsageError(f"{option} is missing: say which way of the machine file it is")
    cpu, host, device = names
    return Roles(load_ways(given["machine"]), cpu, host, device or "", given["launch"])


@app.command("advise")
@with_options(model_options.ADVISE)
def advise_command(given: Given) -> None:
    """Rank what to change first: size of the problem, messages, batches, launches, initiator."""
    import dataclasses

    from cpufree.cli.model import report as model_report
    from cpufree.model.advice import advise, break_even, means

    paper = outputs(given, (given["machine"],))
    roles = roles_of(given)
    found, (fixed, scaled) = advise(roles, given["bytes"], given["share"]), means(roles)
    even = break_even(roles) if roles.device else None
    paper.print(model_report.advice_report(roles, found, fixed, scaled, even))
    means_of = {"fixed": fixed, "scaled": scaled, "break_even_seconds": even}
    content = {"priorities": [dataclasses.asdict(one) for one in found], **means_of}
    finish(given, ("advise",), model_options.ADVISE, content)
    if given["quiet"]:
        end(given, f"first: {found[0].what}")


@app.command("compare")
@with_options(model_options.COMPARE)
def compare_command(
    records: Annotated[
        list[str],
        typer.Argument(metavar="RECORD...", help="Records of cpufree bench cg, and stencil."),
    ],
    given: Given,
) -> None:
    """Hold predicted iterations against benchmark records, which they were not fitted to."""
    import dataclasses

    from cpufree.cli.model.predict_report import errors_report
    from cpufree.model.records import by_gpus, compare, summaries, summary

    paper = outputs(given, tuple(records))
    found = compare(records)
    whole = summary("all", found)
    title = "Predicted iterations beside records"
    paper.print(errors_report([*summaries(found, by_gpus), whole], title))
    lines = [{**dataclasses.asdict(one), "error": one.error} for one in found]
    finish(given, ("compare",), model_options.COMPARE, {"lines": lines})
    if given["quiet"]:
        end(given, f"median error {whole.median:.1%}")
