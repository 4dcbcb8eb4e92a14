"""A headless browser, for pictures and tests of the page.

It is Chromium with its driver, if they are installed (`apt-get install chromium chromium-driver`).
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

ENTER, TAB, MOST_TABS = "\ue007", "\ue004", 90
AXE = os.environ.get("MEDPROBE_AXE", "")  # axe.min.js of axe-core, which tests accessibility
NAMES = ("chromium", "chromium-browser", "google-chrome")


def find_missing() -> str:
    """Why a browser cannot be opened; empty if it can."""
    if find_spec("selenium") is None:
        return "selenium is not installed"
    if not any(map(shutil.which, NAMES)):
        return f"none of {', '.join(NAMES)} is installed"
    return "" if shutil.which("chromedriver") else "chromedriver is not installed"


@contextmanager
def open_browser(*, offline: bool = True) -> Iterator["Chrome"]:
    """Open a headless browser; with `offline`, without a network."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = next(filter(None, map(shutil.which, NAMES)))
    for flag in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "hide-scrollbars"):
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        rates = {"latency": 0, "downloadThroughput": -1, "uploadThroughput": -1}
        driver.execute_cdp_cmd("Network.enable", {})
        driver.execute_cdp_cmd("Network.emulateNetworkConditions", {"offline": offline, **rates})
        set_view(driver)
        yield driver
    finally:
        driver.quit()


def set_view(driver: "Chrome", width: int = 1280, height: int = 800, *, dark: bool = False) -> None:
    """Set the size of the window's content in pixels, and the preferred colour scheme."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


class Reader:
    """Opens addresses, clicks on what bears a text, and sees what is shown."""

    def __init__(self, window: Any, reports: Path) -> None:
        self.window, self.reports = window, reports

    def open(self, address: str) -> None:
        self.window.get("about:blank")
        self.window.get(f"{self.reports.as_uri()}/{address}")

    def asks(self, script: str) -> Any:
        return self.window.execute_script(f"return {script}")

    def finds(self, css: str, text: str = "") -> list[Any]:
        elements = self.window.find_elements("css selector", css)
        return [element for element in elements if element.is_displayed() and text in element.text]

    def waits_for(self, css: str, text: str = "") -> list[Any]:
        """Such elements, as soon as the page shows any.

        The events `toggle` and `hashchange`, other pages and other files come after the click.
        """
        from selenium.common.exceptions import StaleElementReferenceException
        from selenium.webdriver.support.wait import WebDriverWait

        wait = WebDriverWait(self.window, 30, ignored_exceptions=[StaleElementReferenceException])
        elements: list[Any] = wait.until(lambda _: self.finds(css, text))
        return elements

    def clicks(self, css: str, text: str = "") -> None:
        self.waits_for(css, text)[0].click()

    def tabs_to(self, css: str, text: str = "") -> None:
        """Presses Tab until what has the focus is this, which is to be seen as having it."""
        wanted = self.waits_for(css, text)[0]
        for _ in range(MOST_TABS):
            self.types(TAB)
            if self.window.switch_to.active_element == wanted:
                assert self.asks("getComputedStyle(document.activeElement).outlineStyle") != "none"
                return
        pytest.fail(f"no way to {css} {text} by Tab")

    def types(self, keys: str) -> None:
        self.window.switch_to.active_element.send_keys(keys)

    def cells(self, column: int) -> list[str]:
        """A column of the first table of all metrics that is open."""
        [box, *_] = self.finds(".open .choice .scroll")
        cells = box.find_elements("css selector", f"tbody td:nth-child({column + 1})")
        return [cell.text for cell in cells if cell.is_displayed()]

    def rows(self) -> list[str]:
        return [row.text for row in self.finds(".open tbody tr")]

    def drawn(self) -> set[str]:
        """The series of the first drawing that is open, without those that are faint."""
        series = "document.querySelector('.open svg').querySelectorAll('[data-series]:not(.faint)')"
        return set(self.asks(f"[...{series}].map(one => one.dataset.series)"))

    def is_accessible(self) -> None:
        """Axe finds nothing, with all folds open."""
        self.asks("document.querySelectorAll('details').forEach(fold => fold.open = true)")
        self.window.execute_script(Path(AXE).read_text(encoding="utf-8"))
        run = "const done = arguments[0]; axe.run().then(found => done(found.violations))"
        assert self.window.execute_async_script(run) == [], self.window.current_url
