"""A headless browser, for pictures and tests of the page.

It is Chromium with its driver, if they are installed (`apt-get install chromium chromium-driver`).
"""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

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
