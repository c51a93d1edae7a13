"""A real JupyterLab, a real Voila and a real Chromium; skipped with the reason where one is missing."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
BIN = Path(sys.executable).parent
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--disable-quic",
]  # fmt: skip
READY = """() => {
    const panel = window.jupyterapp.shell.currentWidget;
    const kernel = panel?.sessionContext?.session?.kernel;
    return panel?.context?.isReady && panel.sessionContext.isReady && kernel?.connectionStatus === 'connected'
        && kernel.status === 'idle';
}"""
"""The mark in the toolbar shows before the kernel's socket is up, and cells sent then are lost: ask the session."""
RUN_ALL = """ms => Promise.race([
    window.jupyterapp.commands.execute('notebook:run-all-cells'),
    new Promise(resolve => setTimeout(() => resolve('timed out'), ms)),
])"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.filterwarnings("default"))  # of playwright, jupyter and their loops


@pytest.fixture(scope="module")  # not longer: while it lives, no other test can run an event loop of its own
def browser() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (pip install '.[browser]')")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        pytest.skip("there is no chromium here (apt-get install chromium)")
    with api.sync_playwright() as running:
        started = running.chromium.launch(executable_path=chromium, headless=True, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Homes and settings of its own, with JupyterLab's news and update checks off: they call out."""
    home = tmp_path_factory.mktemp("home")
    folder = home / "settings" / "@jupyterlab" / "apputils-extension"
    folder.mkdir(parents=True)
    quiet = {"fetchNews": "false", "checkForUpdates": False}
    (folder / "notification.jupyterlab-settings").write_text(json.dumps(quiet))
    names = {
        "HOME": home, "JUPYTER_CONFIG_DIR": home / "config", "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime", "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces", "IPYTHONDIR": home / "ipython", "MPLCONFIGDIR": home / "mpl",
    }  # fmt: skip
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return os.environ | {name: str(place) for name, place in names.items()} | {"PATH": path}


@contextmanager
def serving(arguments: list[str], environment: dict[str, str], url: str, log: Path) -> Iterator[None]:
    """Start a server in a group of its own and end the group, kernels included."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            arguments, env=environment, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            _wait(process, url, log)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


def _wait(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended: {log.read_text()[-2000:]}")
        try:
            urllib.request.urlopen(url, timeout=2)  # noqa: S310 - it is our own server
            return
        except urllib.error.HTTPError:
            return  # an answer, if only "not allowed", means that it listens
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the server does not answer")


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Seen:
    """What a page did besides showing itself: requests that left this machine, and errors in its console."""

    def __init__(self) -> None:
        self.outside: list[str] = []
        self.errors: list[str] = []


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    seen = Seen()
    context = browser.new_context(viewport={"width": 1400, "height": 1000})
    shown = context.new_page()
    shown.seen = seen
    shown.on("pageerror", lambda error: seen.errors.append(str(error)))
    shown.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)

    def inside_only(route: Any) -> None:
        url = route.request.url
        if url.startswith(("http://127.0.0.1", "ws://127.0.0.1", "data:", "blob:")):
            route.continue_()
        else:
            seen.outside.append(url)
            route.abort()

    shown.route("**/*", inside_only)
    shown.set_default_timeout(60_000)
    yield shown
    context.close()


@pytest.fixture(scope="session")
def lab_url(environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    root = tmp_path_factory.mktemp("notebooks")
    for notebook in NOTEBOOKS.glob("*.ipynb"):
        shutil.copy(notebook, root)
    port, token = free_port(), secrets.token_hex(16)
    base = f"http://127.0.0.1:{port}"
    arguments = [
        str(BIN / "jupyter-lab"), "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={root}",
        "--LabApp.expose_app_in_browser=True", "--LabApp.extension_manager=readonly",
    ]  # fmt: skip
    with serving(arguments, environment, f"{base}/api?token={token}", root.parent / "lab.log"):
        yield base, token, root


@pytest.fixture
def open_notebook(page: Any, lab_url: tuple[str, str, Path]) -> Callable[[str], Any]:
    """Open a notebook, wait for its kernel, and run all cells; a notebook of one cell is made from code."""
    base, token, root = lab_url

    def open_it(name: str, code: str | None = None) -> Any:
        if code is not None:
            import nbformat

            made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
            made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
            nbformat.write(made, root / name)
        page.goto(f"{base}/lab/tree/{name}?token={token}&reset")
        page.wait_for_function("() => window.jupyterapp")
        page.evaluate("() => window.jupyterapp.restored")
        page.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        page.wait_for_function(READY)
        assert page.evaluate(RUN_ALL, 180_000) is True
        return page

    return open_it


@pytest.fixture
def dashboard_url(environment: dict[str, str], tmp_path: Path) -> Iterator[str]:
    """The address of the explorer's page, served by the command."""
    pytest.importorskip("voila", reason="voila is not installed (pip install '.[dashboard]')")
    port, token = free_port(), secrets.token_hex(16)
    base = f"http://127.0.0.1:{port}"
    arguments = [str(BIN / "harness-lab"), "dashboard", "--no-browser", f"--port={port}", f"--token={token}"]
    with serving(arguments, environment, f"{base}/voila/static/nothing", tmp_path / "voila.log"):
        yield f"{base}/?token={token}"
