"""The options of `cpufree model`, in the form of `cpufree.options`."""

from __future__ import annotations

from dataclasses import replace

from cpufree.options import JSON, OUT, PLOT, QUIET
from cpufree.options.schema import Option

SUMMIT = "summit-2020"
WAYS = Option(
    "ways", "text", None,
    "Ways to measure, with commas between; default: all that this machine has, and patterns.",
    "ways to measure, with commas between; then no patterns are measured",
    form="LIST", otherwise="all that the machine has",
)  # fmt: skip
QUICK = Option(
    "quick", "switch", False,
    "At most a minute: fewer repeats, and windows of 16 alone.",
    "at most a minute: fewer repeats, and windows of 16 alone",
)  # fmt: skip
HALO = Option(
    "halo", "text", "gen:flange_hex?r_out=12,t=4,pipe=6",
    "Matrix whose halos are exchanged, as for solve.",
    "matrix whose halos are exchanged, as for [`solve`](#cpufree-solve-a)", form="A", metavar="A",
)  # fmt: skip
SIZES = Option(
    "sizes", "text", None,
    "Bytes of messages, separated by commas; sizes that are no powers of two are held out. "
    "Default: 8 to 8388608.",
    "bytes of messages, separated by commas; sizes that are no powers of two are held out",
    form="LIST", otherwise="8 to 8388608",
)  # fmt: skip
SEED = Option(
    "seed", "count", 0, "Of what is random.", "of the random order, or of the bootstrap",
    least=0, form="N",
)  # fmt: skip
MACHINE = Option(
    "machine", "file", SUMMIT,
    "Machine file, or the name of a published one.",
    "machine file, or the name of one that comes along (`summit-2020`, `h100`, `h200`)",
    form="FILE", metavar="FILE",
)  # fmt: skip
WAY = Option(
    "way", "text", None, "Way of the messages.", "way of the messages",
    form="NAME", required=True, otherwise="required",
)  # fmt: skip
BYTES = Option(
    "bytes", "text", None, "Bytes of messages, with commas between.",
    "bytes of messages, with commas between", form="LIST", required=True, otherwise="required",
)  # fmt: skip
PIPELINED = Option(
    "pipelined", "switch", False, "Of many messages in a row, instead of a single one.",
    "of many messages in a row, instead of a single one",
)  # fmt: skip
CPU = Option(
    "cpu", "text", None, "Way between CPUs. Default: Summit's gets.",
    "way between CPUs", form="NAME", otherwise="`cpu-get` on Summit; required elsewhere",
)  # fmt: skip
HOST = replace(
    CPU, name="host", help="Way for GPUs that the host initiates.",
    meaning="way for GPUs that the host initiates",
    otherwise="`host-get` on Summit; required elsewhere",
)  # fmt: skip
DEVICE = replace(
    CPU, name="device", help="Way that a device initiates.",
    meaning="way that a device initiates", otherwise="`device-get` on Summit; none elsewhere",
)  # fmt: skip
LAUNCH = Option(
    "launch", "number", 5e-6, "Launch and synchronization of a kernel around messages of the host.",
    "launch and synchronization of a kernel around messages of the host",
    least=0, form="SECONDS",
)  # fmt: skip
SHARE = Option(
    "share", "number", 0.25, "Share of communication in the time on the CPU, below 1.",
    "share of communication in the time on the CPU, below 1", least=0, above=True, form="F",
)  # fmt: skip
REPORT = (JSON, QUIET)


def plot(what: str) -> Option:
    """Return the option --plot of a command."""
    return replace(
        PLOT,
        help=f"{what}: .png, .svg or .pdf.",
        meaning=f"{what[0].lower()}{what[1:]} (`.png`, `.svg`, `.pdf`)",
    )


def out(what: str) -> Option:
    """Return the option --out of a command."""
    return replace(OUT, default=None, required=True, help=f"{what}.", meaning=what[0].lower()
                   + what[1:], otherwise="required")  # fmt: skip


MEASURE = (
    *(WAYS, QUICK, SIZES, HALO, SEED),
    out("File of samples to write, .jsonl"),
    *REPORT,
)
FIT = (SEED, out("Machine file to write, .json"), plot("Fitted curves and residuals"), *REPORT)
VALIDATE = REPORT
SHOW = (plot("Time against size, and the cost of 8 B in its parts"), *REPORT)
PREDICT = (MACHINE, WAY, BYTES, PIPELINED, *REPORT)
ADVISE = (
    *(MACHINE, CPU, HOST, DEVICE, LAUNCH, SHARE),
    replace(
        BYTES, kind="count", default=1024, help="Bytes of a message.", meaning="bytes of a message",
        least=1, form="N", required=False, otherwise="",
    ),
    *REPORT,
)  # fmt: skip
CALIBRATE = (
    replace(
        out("Machine file to write, .json"),
        required=False,
        otherwise="`~/.config/cpufree/machines/GPU.json`",
    ),
    *REPORT,
)
COMPARE = REPORT
PREDICT_PES = Option(
    "pes", "text", "1-8",
    "Numbers of GPUs: 1-64 (doubled from 1 on), or 1,2,4.",
    "numbers of GPUs: `1-64` (doubled from 1 on), or `1,2,4`", form="LIST",
)  # fmt: skip
PREDICT_METHOD = Option(
    "method", "choice", "prcg", "Method.", "the method",
    choices=("cg", "prcg", "pipecg", "minres", "bicgstab"),
)  # fmt: skip
PREDICT_PRECISION = Option(
    "precision", "choice", "double",
    "Precision of the matrix and of vectors; mixed: products read values of A in single.",
    "precision of the matrix and of vectors; [mixed](solving/precision.md)",
    choices=("double", "single", "mixed"),
)  # fmt: skip
PREDICT_MACHINE = replace(
    MACHINE,
    default=None,
    help="Machine file, or h100 or h200. Default: by the GPUs there are.",
    meaning="machine file, or `h100` or `h200`",
    otherwise="by the GPUs there are, else `h200`",
)
PREDICT_SOLVE = (
    *(PREDICT_PES, PREDICT_METHOD, PREDICT_PRECISION, PREDICT_MACHINE),
    plot("Time in its parts, and efficiency"),
    *REPORT,
)
TABLES = {
    "model_measure": MEASURE,
    "model_fit": FIT,
    "model_calibrate": CALIBRATE,
    "model_validate": VALIDATE,
    "model_show": SHOW,
    "model_predict": PREDICT,
    "model_advise": ADVISE,
    "model_compare": COMPARE,
}
"""By the names of the tables in docs/cli.md."""
