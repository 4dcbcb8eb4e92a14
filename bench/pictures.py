"""The README's pictures of the page: `python -m bench.pictures` takes them from reports/ in a
headless browser (see `browser.py`), after `medprobe compare`."""

import sys
from pathlib import Path
from typing import Final

from bench.browser import browser, look, missing
from medprobe.core.places import REPORTS

FOLDER: Final = Path("docs/pictures")
VIEWS: Final = {  # picture -> what is open in the page, and how
    "leaderboard": ("index.html", 1280, 820, False),
    "benchmark": ("index.html#medlama?models=taught,untaught&by=relation", 1280, 900, False),
    "query": ("queries/medlama.html#show=only-a&query=may_treat-0006", 1280, 900, False),
    "phone-dark": ("index.html#medlama?models=taught,untaught", 420, 820, True),
}


def main() -> None:
    """Take all pictures."""
    if said := missing():
        sys.exit(f"no browser: {said}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    with browser() as driver:
        for name, (address, width, height, dark) in VIEWS.items():
            look(driver, width, height, dark=dark)
            driver.get("about:blank")
            driver.get(f"{REPORTS.resolve().as_uri()}/{address}")
            path = FOLDER / f"{name}.png"
            driver.save_screenshot(str(path))
            print(f"{path}, {path.stat().st_size // 1024} kB")


if __name__ == "__main__":
    main()
