"""The page in a headless browser, opened from disk without a network: what readers see and do."""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from helpers.browser import find_missing, open_browser, set_view
from helpers.toy_project import METADATA, NAMED, project
from medprobe.core import places
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.core.tables import BASELINE
from medprobe.pipeline.stages.compare import compare
from medprobe.pipeline.stages.score import score
from medprobe.report.page import write_page
from medprobe.report.page_data import PageData

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(find_missing()), reason=f"no browser: {find_missing()}"),
]
MODELS = {"taught": {}, "untaught": {"untaught_twin_of": "taught"}, "third": {}}
PARAMS = Params(
    score=ScoreParams(bootstrap=100),
    **NAMED
    | {"models": Models(masked={name: ModelParams(**about) for name, about in MODELS.items()})},
)
ENTER, TAB, MOST_TABS = "\ue007", "\ue004", 90
AXE = os.environ.get("MEDPROBE_AXE", "")  # axe.min.js of axe-core, which tests accessibility
LONG = "BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"
VIEWS = ("", "#made_up", "#made_up?mean=micro", "#made_up?models=taught", "#reading")
QUERY_VIEWS = ("", "#show=only-a", "#query=full-may_treat-3")


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as monkeypatch:
        project(folder, monkeypatch)
        replace(METADATA, invented=False).write(places.ABOUT / "made_up.json")
        shutil.copytree(places.PREDICTIONS / "untaught", places.PREDICTIONS / "third")
        taught = places.PREDICTIONS / "taught"
        shutil.copytree(taught / "contrastive", taught / "answering")
        score(PARAMS)
        compare(PARAMS)
    return folder / "reports"


@pytest.fixture(scope="module")
def many_models(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page of sixteen models: those of `reports`, and others with long names and less."""
    tables = {name: pd.read_csv(reports / f"{name}.csv") for name in ("comparison", "significance")}
    table = tables["comparison"]
    table = table[table["model"].isin(MODELS) & (table["model"] != "third")]
    copies = [table]
    for number in range(7):
        scaled = table.assign(model=table["model"].map(f"{{}}-{number}-{LONG}".format))
        numbers = ["value", "low", "high"]
        copies.append(scaled.assign(**{name: scaled[name] * 0.9**number for name in numbers}))
    results = PageData(
        comparison=pd.concat(copies, ignore_index=True).fillna({"subset": ""}),
        significance=tables["significance"],
        baselines=tables["comparison"][tables["comparison"]["model"] == BASELINE],
        benchmarks={"made_up": METADATA},
    )
    folder = tmp_path_factory.mktemp("many")
    write_page(results, [], {}, folder)
    return folder


@pytest.fixture(scope="module")
def single_models(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of one model each: one that knows much, and one that knows nothing."""
    tables = {name: pd.read_csv(reports / f"{name}.csv") for name in ("comparison", "significance")}
    table, tests = (rows.fillna({"subset": ""}) for rows in tables.values())
    of_baseline, pages = table[table["model"] == BASELINE], {}
    for model in ("taught", "untaught"):
        results = PageData(
            comparison=table[table["model"] == model],
            significance=tests,
            baselines=of_baseline,
            benchmarks={"made_up": METADATA},
        )
        pages[model] = tmp_path_factory.mktemp(model)
        write_page(results, [], {}, pages[model])
    return pages


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    with open_browser() as driver:
        yield driver


@pytest.fixture
def page(window: Any, reports: Path) -> Iterator["Reader"]:
    """A reader of the page; whatever the test does, the browser has nothing to complain of."""
    set_view(window)
    reader = Reader(window, reports)
    window.get_log("browser")
    yield reader
    assert window.get_log("browser") == []


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


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_answers(
    page: Reader, single_models: dict[str, Path], many_models: Path, width: int, height: int
) -> None:
    """The sentence says who is above which control; the drawing has the numbers of all models."""
    pages = {
        "is significantly above": (page.reports, 3),
        "taught is significantly above": (single_models["taught"], 1),
        "untaught is not significantly above": (single_models["untaught"], 1),
        "-0-": (many_models, 16),
    }
    set_view(page.window, width, height)
    for start, (folder, models) in pages.items():
        reader = Reader(page.window, folder)
        reader.open("index.html")
        [sentence], [drawing] = reader.finds(".open .says"), reader.finds(".open .bars")
        assert start in sentence.text
        assert "its answers to other subjects" in sentence.text
        bars = reader.finds(".open .bars li")
        assert len(bars) == models
        values = [bar.find_element("css selector", ".number").text for bar in bars]
        assert all(re.fullmatch(r"[\d.]+", value) for value in values)
        assert not {*values} & {*sentence.text.split()}, "each fact once"
        assert len(reader.finds(".open .track i.control")) == models
        assert len(reader.finds(".open .track i.majority")) == models
        assert all(why.text for why in reader.finds(".open .evidence"))
        for element in (sentence, drawing, *bars):
            assert element.rect["y"] + element.rect["height"] <= height, (start, element.text)
            assert element.rect["x"] + element.rect["width"] <= width, (start, element.text)
        assert reader.finds(".chapter") == reader.finds("#leaderboard"), "one view at a time"


def test_the_best_is_the_best_of_those_that_are_chosen(page: Reader) -> None:
    page.open("index.html")
    [sentence] = page.finds(".open .says")
    assert sentence.text.startswith("taught is significantly above") and "third" in sentence.text
    page.clicks("#models button", "untaught")
    start = "untaught is not significantly above its answers to other subjects on made_up"
    assert sentence.text.startswith(start)
    assert [name.text for name in page.finds(".open .says code")][:2] == ["untaught", "made_up"]
    page.clicks("#models button", "third")
    end = "; no other of these models is significantly above its control."
    assert sentence.text.endswith(end)
    assert {bar.text.split()[0] for bar in page.finds(".open .bars li")} == {"third", "untaught"}


def test_the_rows_that_are_shown_can_be_taken_along(page: Reader) -> None:
    page.open("index.html#leaderboard?models=third,untaught")
    page.window.execute_script(
        "URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); "
        "return '#'; }"
    )
    page.clicks(".open .along button", "CSV")
    head, *rows = page.asks("window.saved").splitlines()
    assert head.startswith("benchmark,model,value,") and len(rows) == 2
    assert rows[0].startswith('"made_up (full, acc@1, %)",third (') and "untaught (" in rows[1]


def test_headings_are_linked_and_what_print_opens_closes_again(page: Reader) -> None:
    page.open("index.html#made_up")
    links = page.finds(".open :is(h2, h3, h4) .link")
    assert links and all(link.get_attribute("href").count("#") == 1 for link in links)
    folds = "document.querySelectorAll('details[open]').length"
    page.window.execute_script("document.querySelector('.open details').open = true")
    before = page.asks(folds)
    page.window.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert page.asks(folds) == page.asks("document.querySelectorAll('details').length") > before
    page.window.execute_script("dispatchEvent(new Event('afterprint'))")
    assert page.asks(folds) == before


def test_two_models_stand_side_by_side_in_two_actions(page: Reader) -> None:
    page.open("index.html#made_up")
    assert page.drawn() == {"taught", "third", "untaught"}
    page.clicks("#models button", "third")
    page.clicks("#models button", "untaught")
    assert page.drawn() == {"third", "untaught"}
    assert "models=third,untaught" in page.window.current_url
    page.clicks("#views a", "leaderboard")
    page.waits_for("#leaderboard tbody tr")
    assert [row.splitlines()[2].split()[-1] for row in page.rows()] == ["third", "untaught"]
    assert "models=third,untaught" in page.window.current_url


def test_what_is_chosen_stands_in_the_address(page: Reader) -> None:
    page.open("index.html#made_up?mean=micro&models=taught,nobody")
    page.clicks(".open summary", "All numbers on full")
    chosen = page.asks("[...document.querySelectorAll('.open select')].map(one => one.value)")
    assert "micro" in chosen
    assert page.drawn() == {"taught"}
    assert set(page.cells(0)) == {"taught"}
    page.open("index.html#made_up/differences-and-chance?models=taught")
    [head] = page.finds("h3", "Differences and chance")
    assert page.asks("window.scrollY") > 0 and head.is_displayed()
    page.open("index.html#%E0%A4%A?models=%")
    assert page.finds("#leaderboard")


def test_rows_with_words_are_found(page: Reader) -> None:
    page.open("index.html#made_up/differences-and-chance")
    page.clicks(".open summary", "All pairs")
    before = len(page.rows())
    page.finds(".open input[type=search]")[0].send_keys("Third contrastive")
    rows = page.rows()
    assert 0 < len(rows) < before
    assert sum("third" in row and "contrastive" in row for row in rows) >= 1


def test_a_drawing_says_its_numbers(page: Reader) -> None:
    page.open("index.html#made_up")
    page.clicks(".open figure summary", "Numbers")
    assert "taught answering 75.0 [" in page.waits_for(".open figure tbody tr")[0].text
    title = "document.querySelector('.open svg use title').textContent"
    assert page.asks(title).startswith("taught\nanswering\n75.0 [")


def test_a_trip_by_keyboard_alone(page: Reader) -> None:
    """From the first screen to a sorted view of two models, and down to a query's answers."""
    page.open("index.html")
    page.tabs_to("#views a", "made_up")
    page.types(ENTER)
    page.waits_for("#made_up")
    page.tabs_to("#models button", "third")
    page.types(" ")
    page.tabs_to("#models button", "untaught")
    page.types(" ")
    assert page.drawn() == {"third", "untaught"}
    page.tabs_to(".open summary", "All numbers on full")
    page.types(ENTER)
    page.tabs_to(".open select")
    page.types("micro")
    assert "mean=micro" in page.window.current_url
    page.tabs_to(".open .choice th button", "acc@5")
    page.types(ENTER)
    values = [float(text.split()[0]) for text in page.cells(3)]
    assert values == sorted(values, reverse=True)
    page.open("index.html#made_up/query-by-query")
    page.tabs_to(".open ul a", "Show single queries")
    page.types(ENTER)
    page.tabs_to("#groups button", "A right, B not")
    page.types(ENTER)
    page.tabs_to("#list a")
    page.types(ENTER)
    page.waits_for("#query tbody tr")
    page.tabs_to("#query button", "Close")
    page.types(ENTER)
    assert not page.finds("#query tbody tr")


def test_a_query_is_found_by_search_with_all_its_answers(page: Reader) -> None:
    page.open("index.html#made_up/query-by-query")
    page.clicks("a", "Show single queries")
    page.clicks("button", "A right, B not")
    assert "show=only-a" in page.window.current_url
    page.finds("input[type=search]")[0].send_keys("may_treat-3")
    [row] = page.finds("#list tbody tr")
    assert row.text.startswith("full-may_treat-3") and row.text.endswith("may_treat")
    page.waits_for("#list td:nth-child(4)", "C1")  # what A answered
    page.clicks("#list a", "full-may_treat-3")
    lines = [line.text for line in page.waits_for("#query tbody tr")]
    assert len(lines) == 8  # three models, one by two methods, two variants; no sweeps
    assert lines[2].startswith("taught · contrastive ✓ C1 C2 C3")
    assert "drug" not in page.asks("document.documentElement.outerHTML")
    page.clicks("a", "made_up in numbers")
    assert page.waits_for("#made_up")


def test_two_models_keep_their_names_down_to_queries_and_are_compared_by_relation(
    page: Reader,
) -> None:
    page.open("index.html#made_up/query-by-query?models=untaught,third")
    page.clicks("a", "Show single queries")
    page.waits_for("#controls select")
    chosen = page.asks("[...document.querySelectorAll('select')].map(menu => menu.value)")
    assert [text.split()[0] for text in chosen if " · " in text] == ["untaught", "third"]
    page.open("queries/made_up.html#a=taught · contrastive&b=untaught · contrastive")
    page.clicks("#relations summary")
    rows = [row.text.split() for row in page.waits_for("#relations tbody tr")]
    assert all(row[4].startswith("+") for row in rows)
    names = sorted(row[0] for row in rows)
    for order in (names, names[::-1]):
        page.clicks("#relations th button", "relation")
        assert [row.text.split()[0] for row in page.finds("#relations tbody tr")] == order


def test_the_skip_link_leads_to_the_content_and_keeps_the_address(page: Reader) -> None:
    page.open("index.html#made_up?models=third")
    page.types(TAB)
    page.types(ENTER)
    assert page.asks("document.activeElement.id") == "main"
    assert "models=third" in page.window.current_url
    assert "made_up: third" in page.asks("document.getElementById('status').textContent")


@pytest.mark.parametrize("width", [420, 1280])
def test_nothing_is_wider_than_the_screen(page: Reader, width: int) -> None:
    for dark in (False, True):
        set_view(page.window, width, dark=dark)
        for view in (*(f"index.html{view}" for view in VIEWS), "queries/made_up.html"):
            page.open(view)
            assert page.asks("document.documentElement.scrollWidth") <= width, view
    page.open("queries/made_up.html#query=full-may_treat-3")
    page.waits_for("#query tbody tr")
    long_name = "'a/long_name'.repeat(9)"
    page.window.execute_script(f"document.querySelector('#query h2').textContent = {long_name}")
    assert page.asks("document.documentElement.scrollWidth") <= width


def test_a_dark_screen_is_printed_dark_on_light(page: Reader) -> None:
    set_view(page.window, dark=True)
    page.open("index.html#made_up")
    shade = "getComputedStyle(document.body).backgroundColor"
    assert page.asks(shade) == "rgb(18, 23, 29)"
    ink = "getComputedStyle(document.querySelector('.open svg text')).fill"
    assert page.asks(ink) == "rgb(228, 233, 239)"
    page.window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.asks(ink) == "rgb(28, 36, 48)"
    assert page.window.execute_cdp_cmd("Page.printToPDF", {})["data"]


@pytest.mark.parametrize("width", [390, 1280])
def test_sixteen_models_of_long_names_fit(page: Reader, many_models: Path, width: int) -> None:
    """No view is wider than the screen; all names are in rows, the best model first."""
    set_view(page.window, width)
    many = Reader(page.window, many_models)
    for view in VIEWS:
        many.open(f"index.html{view}")
        assert many.asks("document.documentElement.scrollWidth") <= width, view
        assert many.asks("document.querySelectorAll('#models button').length") == 16
    many.open("index.html")
    values = [float(number.text) for number in many.finds("#leaderboard .bars .number")]
    assert len(values) == len(many.rows()) == 16
    assert values == sorted(values, reverse=True)


@pytest.mark.skipif(not AXE, reason="MEDPROBE_AXE does not name axe.min.js")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing(page: Reader, many_models: Path, width: int, dark: bool) -> None:
    """On any view, of three and of sixteen models, and on the query page."""
    set_view(page.window, width, dark=dark)
    script = Path(AXE).read_text(encoding="utf-8")
    addresses = [f"index.html{view}" for view in VIEWS]
    pages = [
        (page, [*addresses, *(f"queries/made_up.html{view}" for view in QUERY_VIEWS)]),
        (Reader(page.window, many_models), addresses),
    ]
    for reader, views in pages:
        for view in views:
            reader.open(view)
            if "query=" in view:
                reader.waits_for("#query tbody tr")
            reader.asks("document.querySelectorAll('details').forEach(fold => fold.open = true)")
            page.window.execute_script(script)
            run = "const done = arguments[0]; axe.run().then(found => done(found.violations))"
            assert page.window.execute_async_script(run) == [], view
