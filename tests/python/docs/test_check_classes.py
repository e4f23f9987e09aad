"""The check that classes stay small, against classes that are not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
CPP_CLASS = """// class Gone {{ void no(); }};
template <class T>
class Many final : public Base<T> {{
 public:
  void open(int a);

 private:
  using Call = int(int);
  struct Inner {{
    int f(int a) const {{ return g(a); }}
  }};
  friend int other(Many& many);
{functions}
  std::function<void(int)> call_;
  static constexpr int kA = f(), kB = g({{1}}, sizeof(T));
}};
"""
CPP_FUNCTIONS = (
    "  int f{}() const {{ if (a(1)) {{ b(); }} return 1; }}",
    "  template <int K>\n  std::vector<int (*)(int)> f{}(std::span<int> a = {{}}, int b = 2);",
)
PYTHON_CLASS = "class Many:\n    def __init__(self): ...\n    def open(self): ...\n"


@pytest.mark.parametrize(("count", "status"), [(25, 0), (26, 1)])
@pytest.mark.parametrize(
    ("name", "head", "one"),
    [
        *(("cpufree/base/a.hpp", CPP_CLASS, function) for function in CPP_FUNCTIONS),
        ("python/cpufree/a.py", PYTHON_CLASS + "{functions}\n", "    async def _f{}(self): ..."),
    ],
    ids=["C++, bodies", "C++, declarations", "Python"],
)
def test_classes_have_a_bound_of_private_functions(
    tmp_path: Path, name: str, head: str, one: str, count: int, status: int
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True)
    file.write_text(head.format(functions="\n".join(one.format(k) for k in range(count))))
    command = [sys.executable, str(ROOT / "tools/check_classes.py"), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == status, found.stdout
    assert f"{count} private functions" in found.stdout
    assert (f"{name}:" in found.stdout) == (status == 1)
    assert "Many" in found.stdout
