"""The leaderboard in a headless browser: what readers of 2, 6 and 40 models see and do."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.browser import AXE, Reader, find_missing, open_browser, set_view
from helpers.made_board import page_data, spelt
from medprobe.core.params import Models, Params
from medprobe.report.leaderboard import leaderboard, title
from medprobe.report.page import write_page
from medprobe.report.page_data import PageData

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(bool(find_missing()), reason=f"no browser: {find_missing()}"),
]
KINDS = ("masked", "causal")
LONG = "BiomedNLP-BiomedBERT-base-uncased-abstract-fulltext"


def few() -> PageData:
    """`good` leads on drugs, nobody else was asked genes, and the rest of drugs is alike."""
    values = {"drugs": {"good": 0.6, "fair": 0.3, "poor": 0.05}, "genes": {"good": 0.4}}
    parts = {"drugs": {("good", "fair"): (40, 20, 10, 30)}}
    return page_data(
        values, ["good fair", "good poor"], ["good", "fair"], below=["poor"], overlaps=parts
    )


def many() -> PageData:
    """Forty models, each significantly better than those ten places or more behind it."""
    names = [f"{LONG if place % 9 == 5 else 'model'}-{place:02}" for place in range(40)]
    values = {name: 0.9 - 0.02 * place for place, name in enumerate(names)}
    apart = [f"{a} {b}" for (i, a), (j, b) in combinations(enumerate(names), 2) if j - i >= 10]
    kinds: dict[str, dict[str, dict]] = {
        kind: {name: {} for name in names[at::2]} for at, kind in enumerate(KINDS)
    }
    params = Params(models=Models.model_validate(kinds))
    return page_data({"drugs": values, "genes": values}, apart, names[:30], params=params)


def mixed(seed: int) -> PageData:
    """Five models on four benchmarks: some not asked, tests at random."""
    draw = np.random.default_rng(seed)
    models = ("a", "b", "c", "d", "e")
    values = {
        name: {model: draw.integers(0, 99) / 100 for model in models if draw.random() < 0.8}
        for name in ("one", "two", "three", "four")
    }
    apart = [f"{a} {b}" for a, b in combinations(models, 2) if draw.random() < 0.5]
    above = [model for model in models if draw.random() < 0.6]
    return page_data(values, apart, above, untestable="few answers" if seed == 0 else "")


@pytest.fixture(scope="module")
def window() -> Iterator[Any]:
    with open_browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    made = {"few": few(), "many": many(), **{f"mixed-{seed}": mixed(seed) for seed in range(4)}}
    paths = {name: tmp_path_factory.mktemp(name) for name in made}
    for name, results in made.items():
        write_page(results, [], {}, paths[name])
    return paths


@pytest.fixture
def page(window: Any, folders: dict[str, Path]) -> Iterator[Reader]:
    """A reader of the page of few models; the browser has nothing to complain of."""
    set_view(window)
    window.get_log("browser")
    yield Reader(window, folders["few"])
    assert window.get_log("browser") == []


def names(reader: Reader, css: str = "#board .matrix tbody th button") -> list[str]:
    return [button.text for button in reader.finds(css)]


@pytest.mark.parametrize(("width", "height"), [(1280, 800), (390, 844)])
def test_the_first_screen_answers(page: Reader, width: int, height: int) -> None:
    """Who is best, by how much, on what, without scrolling; and what the marks mean."""
    set_view(page.window, width, height)
    page.open("index.html")
    [heading] = page.finds("#title")
    assert heading.text == "good leads on drugs by 30.0 points"
    assert names(page) == ["good", "fair", "poor"]
    figures = [text.text for text in page.finds(".cell.here .figure > :not(sup)")]
    assert figures == ["60.0", "30.0", "▾", "5.0"]
    [legend] = page.finds(".legend")
    assert "same letter" in legend.text and "ranks" not in legend.text
    assert ("blank: not asked" in legend.text) == (width > 600)
    [order] = page.finds(".order")
    assert "Click two models to compare" in order.text
    for element in (heading, order, *page.finds("#board .matrix tbody tr"), legend):
        assert element.rect["y"] + element.rect["height"] <= height
        assert element.rect["x"] + element.rect["width"] <= width


def test_a_bar_runs_from_control_to_value_and_who_was_not_asked_has_none(page: Reader) -> None:
    page.open("index.html")
    bar = "document.querySelector('.cell .bar')"
    page.window.execute_script(
        "window.box = one => { const { left, width } = one.getBoundingClientRect(); "
        "return [left, width]; }"
    )
    shown = page.asks(f"[{bar}, ...{bar}.children].map(box)")
    (left, width), (start, length), _ = shown
    room = page.asks(f"{bar}.clientLeft")
    left, width = left + room, width - 2 * room
    assert (start - left) / width == pytest.approx(0.1, abs=0.01)  # the control
    assert length / width == pytest.approx(0.5, abs=0.01)  # what the subject contributes
    assert len(page.finds("#board td.none")) == len(page.finds("#board tbody tr")) - 1
    assert "its answers to other subjects: 10.0" in page.asks(
        "document.querySelector('.cell').title"
    )


def test_two_models_are_compared_by_two_clicks(page: Reader) -> None:
    page.open("index.html")
    page.clicks(".matrix tbody th button", "fair")
    assert (
        page.finds("#title")[0].text
        == "fair is significantly above its control on drugs by 20.0 points"
    )
    page.clicks(".matrix tbody th button", "good")
    assert "models=good,fair" in page.window.current_url or "fair,good" in page.window.current_url
    [duel] = page.finds(".duel")
    assert "good is better, +30.0 [+25.0, +35.0]" in duel.text
    assert "100 queries find a difference of 10.0 points in 8 of 10 cases." in duel.text
    links = [link.text for link in page.finds(".parts-of-four p a")]
    assert links == ["only good 40", "both 20", "only fair 10", "neither 30"]
    assert names(page, ".matrix:not(.rest) th button")[:2] == ["drugs", "genes"]
    assert names(page, ".matrix.rest tbody th button") == ["poor"]
    page.open("index.html#leaderboard?models=poor,fair")  # the address is what one shares
    assert page.finds("#title")[0].text == (
        "fair is first but not significantly better than poor on drugs (30.0 against 5.0)"
    )
    assert "not significantly different" in page.finds(".duel")[0].text
    page.clicks("button", "All 3 models")
    assert not page.finds(".duel") and len(page.finds(".matrix tbody tr")) == 3


def test_a_click_on_a_benchmark_sorts_by_it(page: Reader, folders: dict[str, Path]) -> None:
    reader = Reader(page.window, folders["mixed-1"])
    reader.open("index.html")
    head = reader.finds("#board thead button")[1].text
    reader.clicks("#board thead button", head)
    figures = reader.finds(f"#board [data-benchmark='{head}'] .figure > :not(sup, .mark)")
    values = [float(figure.text) for figure in figures]
    assert values == sorted(values, reverse=True)
    assert f"sort={head}" in reader.window.current_url


@pytest.mark.parametrize("seed", range(4))
def test_bold_is_who_shares_a_letter_with_the_best(
    page: Reader, folders: dict[str, Path], seed: int
) -> None:
    """Title, bold and letters follow one rule; where nothing is tested, there are none."""
    reader = Reader(page.window, folders[f"mixed-{seed}"])
    reader.open("index.html")
    for column in leaderboard(mixed(seed))["benchmarks"]:
        cells = sorted(filter(None, column["cells"]), key=lambda cell: cell["place"])
        best = spelt(cells[0]["letters"])
        near = {cell["text"] for cell in cells if spelt(cell["letters"]) & best}
        bold = reader.finds(f"#board [data-benchmark={column['name']}] b")
        assert {text.text for text in bold} == near, column["name"]


@pytest.mark.parametrize("seed", range(4))
def test_the_title_of_any_choice_is_what_python_says(
    page: Reader, folders: dict[str, Path], seed: int
) -> None:
    """The sentence is made twice: for `repro`, and for what a reader chooses."""
    reader, board = Reader(page.window, folders[f"mixed-{seed}"]), leaderboard(mixed(seed))
    reader.open("index.html")
    numbers = range(len(board["models"]))
    chosen = [[*some] for n in numbers for some in combinations(numbers, n + 1)]
    said = reader.window.execute_script("return arguments[0].map(some => title(some))", chosen)
    assert said == [title(board, some) for some in chosen]
    assert reader.finds("#title")[0].text == title(board)


def test_forty_models_are_one_list(page: Reader, folders: dict[str, Path]) -> None:
    reader = Reader(page.window, folders["many"])
    reader.open("index.html")
    assert len(reader.finds("#board tbody tr")) == 40
    ranges = [place.text for place in reader.finds("#board .place")]
    assert (ranges[0], ranges[20]) == ("1–10", "12–30")
    starts = [int(text.partition("–")[0]) for text in ranges]
    assert starts == sorted(starts)
    assert reader.finds("#title")[0].text == (
        "model-00 is first but not significantly better than 9 others on drugs (90.0) and "
        "9 others on genes (90.0)"
    )
    assert len(reader.finds("#board [data-benchmark=drugs] b")) == 10
    assert "possible ranks" in reader.finds(".legend")[0].text
    reader.finds("input[type=search]")[0].send_keys("07")
    assert names(reader) == ["model-07"] and "find=07" in reader.window.current_url
    assert reader.finds("#title")[0].text.startswith("model-07 is significantly above its control")
    reader.open("index.html#leaderboard?kind=causal")
    assert len(reader.finds("#board tbody tr")) == 20
    assert "better than 4 others on drugs" in reader.finds("#title")[0].text
    assert len(reader.finds("#board [data-benchmark=drugs] b")) == 5


def test_a_phone_shows_one_benchmark_and_names_above_bars(
    page: Reader, folders: dict[str, Path]
) -> None:
    set_view(page.window, 390, 844)
    for name in ("few", "many"):
        reader = Reader(page.window, folders[name])
        reader.open("index.html")
        shown = {cell.get_attribute("data-benchmark") for cell in reader.finds("#board td")}
        assert shown == {"drugs"}
        row = reader.finds("#board tbody tr")[0]
        [head, bar] = (row.find_element("css selector", css) for css in ("th button", ".bar"))
        assert head.rect["y"] + head.rect["height"] <= bar.rect["y"]
        reader.finds("#board select.only-phone, .only-phone select")[0].send_keys("genes")
        shown = {cell.get_attribute("data-benchmark") for cell in reader.finds("#board td")}
        assert shown == {"genes"}


VIEWS = ("", "#leaderboard?models=good,fair", "#leaderboard?sort=genes", "#drugs", "#reading")


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_screen(
    page: Reader, folders: dict[str, Path], width: int
) -> None:
    set_view(page.window, width)
    for name in ("few", "many", "mixed-1"):
        for view in VIEWS:
            Reader(page.window, folders[name]).open(f"index.html{view}")
            assert page.asks("document.documentElement.scrollWidth") <= width, (name, view)


@pytest.mark.skipif(not AXE, reason="MEDPROBE_AXE does not name axe.min.js")
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (390, False)])
def test_axe_finds_nothing(page: Reader, folders: dict[str, Path], width: int, dark: bool) -> None:
    set_view(page.window, width, dark=dark)
    for name in ("few", "many"):
        for view in VIEWS:
            reader = Reader(page.window, folders[name])
            reader.open(f"index.html{view}")
            reader.is_accessible()
