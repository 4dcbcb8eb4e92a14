"""All pictures of the documents, taken in a headless browser (see `browser.py`):

python -m bench.pictures ../drugs

They are of the page in reports/ after `medprobe repro`, of two runs compared in MLflow's pages, and
of the project in ../drugs that docs/tutorial.md makes.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import URLError
from urllib.request import urlopen

from helpers.browser import find_missing, open_browser, set_view
from medprobe.core.places import REPORTS
from medprobe.tracking import store

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

FOLDER: Final = Path("docs/pictures")
COMPARED: Final = Path("docs/mlflow-compare.png")
RUNS: Final = ("taught · mask_average", "untaught · mask_average")  # on medlama
PATIENCE: Final = 180  # seconds for MLflow to start, and to draw
View = tuple[str, int, int, bool, str]  # address, width, height, dark, element to wait for
VIEWS: Final[dict[str, View]] = {
    "leaderboard": ("index.html", 1280, 800, False, "#board .matrix"),
    "phone": (
        *("index.html#leaderboard?models=taught,untaught", 390, 844, True),
        "#board .matrix",
    ),
}
TUTORIAL: Final[dict[str, View]] = {
    "tutorial-leaderboard": ("reports/index.html", 1280, 800, False, "#board .matrix"),
    "tutorial-query": (
        *("reports/queries/drugs.html#show=only-a&query=may_treat/vosandamide", 1280, 900, False),
        "#query table",
    ),
}


def of_page(folder: Path, views: dict[str, View]) -> None:
    """Take pictures of pages below a folder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with open_browser() as driver:
        for name, (address, width, height, dark, element) in views.items():
            set_view(driver, width, height, dark=dark)
            _take(driver, f"{folder.resolve().as_uri()}/{address}", element, FOLDER / f"{name}.png")


def of_mlflow() -> None:
    """Take that of two runs compared."""
    client = store.connect()
    [experiment] = client.search_experiments(filter_string="name = 'medlama'")
    runs = client.search_runs([experiment.experiment_id], store.CURRENT)
    ids = {run.info.run_name: run.info.run_id for run in runs}
    chosen = json.dumps([ids[name] for name in RUNS], separators=(",", ":"))
    with served(client.tracking_uri) as server, open_browser(offline=False) as driver:
        set_view(driver, 1500, 890)
        address = (
            f"{server}/#/compare-runs?runs={chosen}&experiments=[%22{experiment.experiment_id}%22]"
        )
        _take(driver, address, ".js-plotly-plot .main-svg", COMPARED)


def _take(driver: "Chrome", address: str, element: str, path: Path) -> None:
    """Open an address, wait for an element, and take the picture."""
    driver.implicitly_wait(PATIENCE)
    driver.get("about:blank")
    driver.get(address)
    driver.find_element("css selector", element)
    driver.save_screenshot(str(path))
    print(f"{path}, {path.stat().st_size // 1024} kB")


@contextmanager
def served(tracking: str) -> Iterator[str]:
    """MLflow's pages of a store, at the address that is given."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "mlflow", "ui", "--workers", "1", "--port", str(port)]
    off = {"MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
    server = subprocess.Popen(
        [*command, "--backend-store-uri", tracking],
        env={**os.environ, **off},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(PATIENCE):
            try:
                urlopen(f"http://127.0.0.1:{port}/health").close()
                break
            except (URLError, ConnectionError):
                time.sleep(1)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()


def main() -> None:
    """Take all pictures."""
    if reason := find_missing():
        sys.exit(f"no browser: {reason}")
    if len(sys.argv) != 2:
        sys.exit("expected: python -m bench.pictures TUTORIAL, the project of docs/tutorial.md")
    of_page(REPORTS, VIEWS)
    of_page(Path(sys.argv[1]), TUTORIAL)
    of_mlflow()


if __name__ == "__main__":
    main()
