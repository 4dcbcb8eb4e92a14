"""The page in a headless browser, opened from disk without a network: what readers see and do."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.browser import AXE, ENTER, TAB, Reader, find_missing, open_browser, set_view
from helpers.toy_project import METADATA, NAMED, project
from medprobe.core import places
from medprobe.core.params import ModelParams, Models, Params, ScoreParams
from medprobe.pipeline.stages.compare import compare
from medprobe.pipeline.stages.score import score

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
def window() -> Iterator[Any]:
    with open_browser() as driver:
        yield driver


@pytest.fixture
def page(window: Any, reports: Path) -> Iterator[Reader]:
    """A reader of the page; whatever the test does, the browser has nothing to complain of."""
    set_view(window)
    reader = Reader(window, reports)
    window.get_log("browser")
    yield reader
    assert window.get_log("browser") == []


def test_the_four_parts_of_two_models_lead_to_their_queries(page: Reader) -> None:
    """As many are there as the first screen says, of the two models that it compares."""
    page.open("index.html#leaderboard?models=taught,untaught")
    counts = [link.text for link in page.finds(".parts-of-four p a")]
    assert counts == ["only taught 14", "both 1", "only untaught 0", "neither 5"]
    page.clicks(".parts-of-four p a", "only taught")
    assert len(page.waits_for("#list tbody tr")) == 14
    chosen = page.asks("[...document.querySelectorAll('#controls select')].map(one => one.value)")
    assert [text for text in chosen if " · " in text] == [
        "taught · contrastive",
        "untaught · contrastive",
    ]


def test_the_rows_that_are_shown_can_be_taken_along(page: Reader) -> None:
    page.open("index.html#made_up?models=third,untaught")
    page.window.execute_script(
        "URL.createObjectURL = blob => { blob.text().then(text => { window.saved = text; }); "
        "return '#'; }"
    )
    page.clicks(".open .along button", "CSV")
    head, *rows = page.asks("window.saved").splitlines()
    assert head.startswith("model,method,") and len(rows) == 2
    assert {row.split(",")[0] for row in rows} == {"third", "untaught"}


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


def test_the_choice_is_kept_in_other_views_until_it_is_undone(page: Reader) -> None:
    page.open("index.html")
    for model in ("third", "untaught"):
        page.clicks("#board tbody th button", model)
    page.clicks("#views a", "made_up")
    page.waits_for("#made_up")
    assert page.drawn() == {"third", "untaught"}
    assert (
        page.finds("#chosen")[0].text.startswith("Shown: untaught, third")
        or "third, untaught" in page.finds("#chosen")[0].text
    )
    page.clicks("#chosen button", "all models")
    assert page.drawn() == {"taught", "third", "untaught"}


def test_what_is_chosen_stands_in_the_address(page: Reader) -> None:
    page.open("index.html#made_up?mean=micro&models=taught,nobody")
    page.clicks(".open summary", "All numbers on full")
    chosen = page.asks("[...document.querySelectorAll('.open select')].map(one => one.value)")
    assert "micro" in chosen
    assert page.drawn() == {"taught"}
    assert set(page.cells(0)) == {"taught"}
    page.open("index.html#made_up/differences-between-models?models=taught")
    [head] = page.finds("h3", "Differences between models")
    assert page.asks("window.scrollY") > 0 and head.is_displayed()
    page.open("index.html#%E0%A4%A?models=%")
    assert page.finds("#leaderboard")


def test_rows_with_words_are_found(page: Reader) -> None:
    page.open("index.html#made_up/differences-between-models")
    page.clicks(".open summary", "Other pairs")
    before = len(page.rows())
    page.finds(".open input[type=search]")[0].send_keys("Third contrastive")
    rows = page.rows()
    assert 0 < len(rows) < before
    assert sum("third" in row and "contrastive" in row for row in rows) >= 1


def test_a_drawing_says_its_numbers(page: Reader) -> None:
    page.open("index.html#made_up")
    assert "taught answering 75.0 [" in page.waits_for(".open figure tbody tr")[0].text
    title = "document.querySelector('.open svg use title').textContent"
    assert page.asks(title).startswith("taught\nanswering\n75.0 [")


def test_a_trip_by_keyboard_alone(page: Reader) -> None:
    """From the first screen to a sorted view of two models, and down to a query's answers."""
    page.open("index.html")
    page.tabs_to("#board tbody th button", "third")
    page.types(" ")
    page.tabs_to("#board tbody th button", "untaught")
    page.types(" ")
    assert page.finds(".duel")
    page.open(f"index.html#made_up?{page.window.current_url.partition('?')[2]}")
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


def test_queries_open_on_the_best_and_the_next_or_on_the_chosen_models(page: Reader) -> None:
    script = "[...document.querySelectorAll('#controls select')].map(menu => menu.value)"
    page.open("queries/made_up.html")
    chosen = [text.split()[0] for text in page.asks(script) if " · " in text]
    assert chosen == ["taught", "third"]
    page.open("index.html#made_up/query-by-query?models=untaught,third")
    page.clicks("a", "Show single queries")
    page.waits_for("#controls select")
    chosen = [text.split()[0] for text in page.asks(script) if " · " in text]
    assert chosen == ["untaught", "third"]


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
    ink = "getComputedStyle(document.querySelector('.open svg text')).fill"
    brightness = f"Math.max(...{ink}.match(/\\d+/g).map(Number))"
    assert page.asks(brightness) > 128
    page.window.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert page.asks(brightness) < 128
    assert page.window.execute_cdp_cmd("Page.printToPDF", {})["data"]


@pytest.mark.skipif(not AXE, reason="MEDPROBE_AXE does not name axe.min.js")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing(page: Reader, width: int, dark: bool) -> None:
    """On any view, and on the query page."""
    set_view(page.window, width, dark=dark)
    for view in VIEWS:
        page.open(f"index.html{view}")
        page.is_accessible()
    for view in QUERY_VIEWS:
        page.open(f"queries/made_up.html{view}")
        if "query=" in view:
            page.waits_for("#query tbody tr")
        page.is_accessible()
