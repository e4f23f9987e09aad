#!/usr/bin/env bash
# Builds the documentation site and checks it: warnings are errors, links within it must lead
# somewhere, and the code of docstrings and pages runs. Usage: tools/build_docs.sh OUT
# Run it with the environment of the project first on PATH, as `make docs` does.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?usage: tools/build_docs.sh OUT}

# The packages are those of the extra `docs` in pyproject.toml.
if ! python -c 'import myst_parser, pydata_sphinx_theme, sphinx, sphinx_copybutton' 2>/dev/null; then
    mapfile -t packages < <(python - <<'PY'
import ast, re
found = re.search(r"^docs = (\[.*?\])$", open("pyproject.toml").read(), re.M | re.S)
print(*ast.literal_eval(found.group(1)), sep="\n")
PY
    )
    python -m pip install -q --disable-pip-version-check "${packages[@]}"
fi

python -m sphinx -q -E -W --keep-going -b html -d "$out/.doctrees" docs "$out"
python -m sphinx -q -W --keep-going -b linkcheck -d "$out/.doctrees" docs "$out/.links"
python -m pytest -q tests/python/docs/test_docs.py
echo "the site is in $out: open $out/index.html"
