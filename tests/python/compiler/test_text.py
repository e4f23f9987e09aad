"""The text of a program is found in its file, and is that of the function."""

from __future__ import annotations

import ast
import doctest
import functools
import importlib.util
import linecache
import os
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cpufree
from cpufree.errors import InvalidInputError, ProgramError

HEAD = "import cpufree\nimport numpy as np\n"


def _module(path: Path, text: str) -> Any:
    path.write_text(HEAD + text)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


LAYOUTS = {
    "comment_at_the_margin": """
def make():
    @cpufree.program
    def f(u):
        u += 1.0
# at the margin
        u *= 2.0
    return f
f = make()
""",
    "docstring_at_the_margin": '''
def make():
    @cpufree.program
    def f(u):
        """Text
at the margin.
        """
        u += 1.0
    return f
f = make()
''',
    "continuation_at_the_margin": """
if True:
    @cpufree.program
    def f(u):
        u += 1.0 + \\
2.0
""",
    "tabs": """
class C:
\t@staticmethod
\t@cpufree.program
\tdef f(u):
\t\tif True:
\t\t\tu += 1.0
f = C.f
""",
    "form_feed": "\n\x0c\n@cpufree.program\ndef f(u):\n    u += 1.0\n\x0c\n    u *= 3.0\n",
    "odd_line_ends": "X = 'a\x1cb\x85c\u2028d'\n@cpufree.program\ndef f(u):\n    u += 1\n",
    "decorators_over_lines": """
def twice(*given):
    return lambda g: g
@twice(
    1,
    lambda: 2,
)
@(
    cpufree.program
)
def f(
    u,
):
    u += 1.0
f = f
""",
    "one_line": "\n@cpufree.program\ndef f(u): u += 1.0; u *= 2.0\n",
    "of_a_branch": """
if len("a") > 1:
    @cpufree.program
    def f(u):
        u += 1.0
else:
    @cpufree.program
    def f(u):
        u += 2.0
""",
    "defined_twice": """
@cpufree.program
def f(u):
    u += 1.0
@cpufree.program
def f(u):
    u += 3.0
""",
    "without_decorator": """
def g(u):
    u += 1.0
h = g
f = cpufree.program(h)
""",
    "of_a_lambda_that_makes_it": """
def outer(a):
    def inner(b):
        @cpufree.program
        def f(u):
            u += a * b
        return f
    return inner
f = (lambda a: outer(a))(2.0)(3.0)
""",
    "type_comments_and_annotations": """
@cpufree.program
def f(u: "Missing") -> "Missing":
    k: Missing = 2.0
    u += k
""",
    "constants_that_look_alike": """
@cpufree.program
def f(u):
    u += 1 + 1.0 + True + -0.0
    if 1 == True and "a" in "ab":
        u *= 2.0
""",
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_def_is_found_however_it_is_laid_out(name: str, tmp_path: Path) -> None:
    f = _module(tmp_path / f"{name}.py", LAYOUTS[name]).f
    found, plain = np.ones(3), np.ones(3)
    f.interpret(found)
    f.function(plain)
    np.testing.assert_array_equal(found, plain)
    assert plain[0] != 1.0


def test_errors_show_the_line_and_column_of_a_nested_def(tmp_path: Path) -> None:
    text = "class C:\n\t@cpufree.program\n\tdef f(u):\n\t\tu[1:] = u[0] + u[1:, :1]\n"
    f = _module(tmp_path / "shown.py", text).C.f
    with pytest.raises(ProgramError) as caught:
        f.interpret(np.ones((3, 3)))
    _, shown, marks, _ = str(caught.value).splitlines()
    assert (shown, marks) == ("    \tu[1:] = u[0] + u[1:, :1]", "    \t^^^^^")
    assert (caught.value.line, caught.value.column) == (6, 2)


# --- names ---


def test_names_below_the_def_are_found(tmp_path: Path) -> None:
    module = _module(
        tmp_path / "below.py",
        "@cpufree.program\ndef f(u):\n    g(u)\n    u *= K\n"
        "@cpufree.program\ndef g(u):\n    u += K\nK = 3.0\n",
    )
    u = np.ones(2)
    module.f.interpret(u)
    np.testing.assert_array_equal(u, [12.0, 12.0])


def test_a_program_that_is_defined_anew_is_called(tmp_path: Path) -> None:
    text = "@cpufree.program\ndef g(u):\n    u += {}\n@cpufree.program\ndef f(u):\n    g(u)\n"
    one = _module(tmp_path / "one.py", text.format(1.0))
    other = _module(tmp_path / "other.py", text.format(5.0))
    u = np.zeros(2)
    one.f.interpret(u)
    one.g = other.g
    one.f.interpret(u)
    np.testing.assert_array_equal(u, [6.0, 6.0])


def test_a_closure_has_the_values_of_the_call() -> None:
    def factory() -> Any:
        @cpufree.program
        def f(u: Any) -> None:
            u += by

        def change(value: float) -> None:
            nonlocal by
            by = value

        by = 1.0
        return f, change

    f, change = factory()
    u = np.zeros(2)
    f.interpret(u)
    change(10.0)
    f.interpret(u)
    np.testing.assert_array_equal(u, [11.0, 11.0])


def test_a_name_that_has_no_value_yet_is_refused_until_it_has(tmp_path: Path) -> None:
    module = _module(tmp_path / "late.py", "@cpufree.program\ndef f(u):\n    u += LATE\n")
    with pytest.raises(ProgramError, match="LATE has no value"):
        module.f.interpret(np.ones(2))
    module.LATE = 2.0
    u = np.ones(2)
    module.f.interpret(u)
    np.testing.assert_array_equal(u, [3.0, 3.0])


# --- what is not the text of the function ---


def _edited(path: Path, before: str, after: str) -> Any:
    module = _module(path, before)
    path.write_text(HEAD + after)
    os.utime(path, (1, 1))
    linecache.checkcache(str(path))
    return module


BODY = "def f(u):\n    u[1:] += 0.5 * (u[:-1] + K)\n    u *= 2.0\n"


@pytest.mark.parametrize(
    "after",
    [
        BODY.replace("0.5", "0.25"),
        BODY.replace("K", "L"),
        BODY.replace("+ K", "- K"),
        BODY.replace("2.0", "2"),
        BODY.replace("[1:]", "[:-1]"),
        BODY + "    u += 1\n",
        "\n" + BODY,
        "K = 1\n",
        "",
        BODY + "    u +=\n",
        BODY.replace("def f", "def g"),
    ],
)
def test_a_file_that_was_edited_is_refused(after: str, tmp_path: Path) -> None:
    module = _edited(tmp_path / "edited.py", BODY, after)
    with pytest.raises(InvalidInputError, match="edited since it was imported"):
        cpufree.program(module.f)


@pytest.mark.parametrize("after", [BODY + "K = 9\n", BODY + "# end\n", BODY.replace(" *=", "  *=")])
def test_a_file_that_was_edited_elsewhere_is_taken(after: str, tmp_path: Path) -> None:
    module = _edited(tmp_path / "edited.py", BODY, after)
    assert isinstance(cpufree.program(module.f).source.tree, ast.FunctionDef)


def test_a_function_that_another_decorator_has_wrapped_is_refused() -> None:
    def doubled(f: Any) -> Any:
        @functools.wraps(f)
        def wrapper(u: Any) -> None:
            f(u)
            f(u)

        return wrapper

    with pytest.raises(InvalidInputError, match=r"put @cpufree\.program next to the def"):

        @cpufree.program
        @doubled
        def f(u: Any) -> None:
            u += 1.0


@pytest.mark.parametrize(
    "text", ["lambda u: u", "async def f(u):\n    u += 1", "def f(u):\n    yield u"]
)
def test_what_is_no_plain_def_is_refused(text: str, tmp_path: Path) -> None:
    text = text if "def" in text else f"f = {text}"
    with pytest.raises(InvalidInputError, match="takes a def"):
        cpufree.program(_module(tmp_path / "no_def.py", text).f)


@pytest.mark.parametrize("given", [print, 3, np.sqrt, functools.partial(print), ast.AST])
def test_what_is_no_function_is_refused(given: Any) -> None:
    with pytest.raises(InvalidInputError, match="takes a function"):
        cpufree.program(given)


def test_a_function_without_text_is_refused() -> None:
    names: dict[str, Any] = {}
    exec("def f(u):\n    u += 1", names)
    with pytest.raises(InvalidInputError, match="cannot be read"):
        cpufree.program(names["f"])


def test_an_assertion_that_pytest_has_rewritten_is_taken() -> None:
    @cpufree.program
    def f(u: Any) -> None:
        assert u.ndim == 1, "a row"
        u += 1.0

    u = np.ones(3)
    f.interpret(u)
    np.testing.assert_array_equal(u, [2.0] * 3)


def test_cells_of_notebooks_have_their_text_in_the_cache_of_lines() -> None:
    text = "@cpufree.program\ndef f(u):\n    u += K\nK = 4.0\n"
    name = "<ipython-input-1-abc>"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    module = types.ModuleType("notebook")
    module.__dict__["cpufree"] = cpufree
    exec(compile(text, name, "exec"), module.__dict__)
    u = np.zeros(2)
    module.f.interpret(u)
    np.testing.assert_array_equal(u, [4.0, 4.0])


def test_a_doctest_may_define_a_program() -> None:
    text = """
    >>> import cpufree, numpy as np
    >>> @cpufree.program
    ... def f(u):
    ...     u += 1.0
    >>> u = np.zeros(2)
    >>> f.interpret(u)
    >>> u
    array([1., 1.])
    """
    test = doctest.DocTestParser().get_doctest(text, {}, "a_program", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0
