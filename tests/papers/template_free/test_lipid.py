"""LIPID: each rule by an example, and the builder over PubMed's files."""

import gzip
import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import gate_helpers
from helpers.pickled import contents, from_copies
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.template_free.benchmarks import lipid, lipid_released
from medprobe.papers.template_free.benchmarks import lipid_released as released
from medprobe.papers.template_free.benchmarks.lipid import (
    KEYWORDS,
    OURS,
    PAPER,
    MaskedSentence,
    keyword_pattern,
    prompt,
    sentences,
)
from medprobe.sources.mentions import Mentions, is_symbol

ENTITIES = ["aspirin", "BRX2", "insulin", "insulin receptor", "CAT", "LARGE", "amyloid-β"]
FINDER = Mentions(((name, name) for name in ENTITIES), exact=is_symbol)
PATTERN = keyword_pattern(OURS)


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Aspirin lowers fever.", "[Y] lowers fever."),
        ("Fever is lowered by ASPIRIN.", "Fever is lowered by [Y]."),
        ("Mutated BRX2, on chromosome 2, is harmful.", "Mutated [Y], on chromosome 2, is harmful."),
        ("The insulin receptor binds it.", "The [Y] binds it."),
        ("CAT is an enzyme.", "[Y] is an enzyme."),
        ("Plaques hold Amyloid-β fibrils.", "Plaques hold [Y] fibrils."),
        ("Weaker aspirin cannot help the student.", "Weaker [Y] cannot help the student."),
        ("A large dose of brx2 acts.", "A large dose of [Y] acts."),
        ("LARGE acts.", "[Y] acts."),
        ("It is aspirin, however.", "It is [Y], however."),
        ("Fever is lowered.", "no mention"),
        ("Aspirination and xaspirin are no words.", "no mention"),
        ("The cat sat.", "no mention"),
        ("A large effect.", "no mention"),
        ("This suggests aspirin.", "filter word: suggests"),
        ("Aspirin was Investigated.", "filter word: investigated"),
        ("Studies of aspirin ended.", "filter word: studies"),
        ("The proposed aspirin helps.", "filter word: proposed"),
        ("Aspirin and BRX2 interact.", "several mentions"),
        ("Aspirin is aspirin.", "several mentions"),
        ("Aspirin or ASPIRIN.", "several mentions"),
        ("Aspirin (a drug) helps.", "filter word: ("),
        ("We gave aspirin.", "filter word: we"),
        ("Aspirin was what WE gave.", "filter word: we"),
        ("However, aspirin helps.", "filter word: However"),
        ("This study of aspirin ended.", "filter word: study"),
        ("Aspirin is a [Y].", "holds [Y] itself"),
    ],
)
def test_each_rule(sentence: str, expected: str) -> None:
    result = prompt(sentence, FINDER, PATTERN)
    assert (result.text if isinstance(result, MaskedSentence) else result) == expected


@pytest.mark.parametrize("word", [word for word in OURS if word.isalpha() and word.islower()])
def test_each_filter_word_in_any_case_and_as_a_word_only(word: str) -> None:
    for form in (word, word.upper(), word.capitalize()):
        assert prompt(f"Aspirin, {form}, helps.", FINDER, PATTERN) == f"filter word: {word}"
    assert isinstance(prompt(f"Aspirin x{word}x helps.", FINDER, PATTERN), MaskedSentence)


def test_the_papers_keywords_are_those_that_it_prints() -> None:
    """Section 3.2.3, "Quality Control"."""
    printed = "here we investigate study propose outline ( our performed suggest However"
    assert list(PAPER) == printed.split()
    assert set(PAPER) < set(OURS) and KEYWORDS == {"paper": PAPER, "ours": OURS}


@pytest.mark.parametrize(
    ("settings", "expected_prompts"),
    [
        ({}, ["[Y] were given.", "[Y] helps, I am told."]),
        ({"keywords": "paper"}, ["This suggests [Y].", "[Y] were given.", "[Y] helps, I am told."]),
        ({"keywords": "paper", "keyword_place": "anywhere"}, ["[Y] helps, I am told."]),
        ({"keywords": ["I am", "were"]}, ["This suggests [Y].", "[Y] (a drug) helps."]),
        ({"keywords": "paper", "max_words": 3}, ["This suggests [Y].", "[Y] were given."]),
    ],
)
def test_keywords_are_ours_the_papers_or_of_another_domain(
    tmp_path: Path, settings: dict[str, Any], expected_prompts: list[str]
) -> None:
    text = "This suggests aspirin. Aspirin were given. Aspirin (a drug) helps. "
    build(tmp_path, [record(1, text + "Quinine helps, I am told.")])
    tables = lipid.build(tmp_path, lipid.Settings(**settings), 0)
    assert tables.queries["prompt"].tolist() == expected_prompts
    if "max_words" in settings:
        assert dropped(tables)["sentence: too_long"] == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It rose by 3.5 mg. p53 fell.", ["It rose by 3.5 mg.", "p53 fell."]),
        ("Growth of E. coli vs. S. aureus.", ["Growth of E. coli vs. S. aureus."]),
        ("See Fig. 2 in Smith et al. Then stop.", ["See Fig. 2 in Smith et al. Then stop."]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("The U.S. Agency met. It ended.", ["The U.S. Agency met.", "It ended."]),
        ("It held 5 µM. α-synuclein fell.", ["It held 5 µM.", "α-synuclein fell."]),
        ("No end", ["No end"]),
        ("", []),
    ],
)
def test_sentences(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected


@given(st.text(alphabet="aA.!? \"')(1é", max_size=40))
def test_no_character_but_blanks_is_lost(text: str) -> None:
    assert "".join("".join(sentences(text)).split()) == "".join(text.split())


def record(
    pmid: int, text: str, date: str = "2022-01-01", version: int = 1, status: str = "entrez"
) -> str:
    year, month, day = date.split("-")
    return f"""<PubmedArticle><MedlineCitation><PMID Version="{version}">{pmid}</PMID>
    <Article><ArticleTitle>Aspirin.</ArticleTitle>
    <Abstract><AbstractText>{text}</AbstractText></Abstract></Article></MedlineCitation>
    <PubmedData><History><PubMedPubDate PubStatus="{status}"><Year>{year}</Year>
    <Month>{month}</Month><Day>{day}</Day></PubMedPubDate></History></PubmedData></PubmedArticle>"""


def build(data: Path, *files: list[str]) -> BenchmarkTables:
    (data / "entities").mkdir(parents=True, exist_ok=True)
    (data / "entities/chemicals.txt").write_text("aspirin\nquinine\n")
    (data / "entities/genes.txt").write_text("BRX2\ninsulin\n")
    (data / "pubmed").mkdir(exist_ok=True)
    for number, records in enumerate(files):
        text = f"<PubmedArticleSet>{''.join(records)}</PubmedArticleSet>"
        path = data / "pubmed" / f"pubmed22n{number}.xml.gz"
        path.write_bytes(gzip.compress(text.encode()))
    return lipid.build(data, lipid.Settings(), 0)


def prompts_by_article(benchmark: BenchmarkTables) -> dict[str, list[str]]:
    return benchmark.queries.groupby("pmid")["prompt"].agg(list).to_dict()


def dropped(benchmark: BenchmarkTables) -> dict[str, int]:
    return benchmark.notes["dropped"].set_index("rule")["count"].to_dict()


def test_a_sentence_across_tags_becomes_a_query(tmp_path: Path) -> None:
    text = "<b>Fever</b> is low. <i>Asp</i>irin &amp; H<sub>2</sub>O help."
    benchmark = build(tmp_path, [record(7, text)])
    (row,) = benchmark.queries.to_dict("records")
    assert row["prompt"] == "[Y] & H2O help."
    assert row["sentence"] == "Aspirin & H2O help."
    assert row["query_id"] == "lipid/chem/7/2"
    assert (row["answers"], row["subset"], row["date"]) == (["aspirin"], "chem", "2022-01-01")


@pytest.mark.parametrize("written", ["Aspi\u00adrin", "ASPIRIN", "\uff21spirin", "As\u200bpirin"])
def test_a_name_in_another_spelling_is_masked_and_passes_the_gate(
    tmp_path: Path, written: str
) -> None:
    benchmark = build(tmp_path, [record(7, f"So {written} and rest help.")])
    assert prompts_by_article(benchmark) == {"7": ["So [Y] and rest help."]}
    failing = gate_helpers.failing("lipid", {"queries": benchmark.queries})
    assert "expect_filled_prompts" not in {check["type"] for check in failing}


def test_one_mention_counts_over_both_lists(tmp_path: Path) -> None:
    benchmark = build(tmp_path, [record(7, "Aspirin hits BRX2. Insulin acts.")])
    assert prompts_by_article(benchmark) == {"7": ["[Y] acts."]}
    assert benchmark.queries["subset"].tolist() == ["gene"]
    assert dropped(benchmark) == {"sentence: several mentions": 1}


def test_candidates_are_the_entities_of_prompts_or_the_whole_list(tmp_path: Path) -> None:
    benchmark = build(tmp_path, [record(7, "Aspirin helps."), record(8, "BRX2 acts.")])
    names = benchmark.candidates.groupby("subset")["name"].agg(list).to_dict()
    assert names == {"chem": ["aspirin"], "gene": ["BRX2"]}
    table = lipid.build(tmp_path, lipid.Settings(candidates="listed"), 0).candidates
    assert table.groupby("subset")["name"].agg(list).to_dict() == {
        "chem": ["aspirin", "quinine"],
        "gene": ["BRX2", "insulin"],
    }


def test_the_last_day_of_a_period_is_out(tmp_path: Path) -> None:
    days = {1: "2022-06-29", 2: "2022-06-30", 3: "2022-07-01"}
    build(tmp_path, [record(number, f"Aspirin has {number}.", day) for number, day in days.items()])
    benchmark = lipid.build(tmp_path, lipid.Settings(submitted_before=date(2022, 6, 30)), 0)
    assert prompts_by_article(benchmark) == {"1": ["[Y] has 1."]}
    assert dropped(benchmark) == {"abstract after the period": 2}
    with pytest.raises(BadInput, match="2021-12-31 is not after submitted_after"):
        lipid.build(tmp_path, lipid.Settings(submitted_before=date(2021, 12, 31)), 0)


def test_the_day_of_the_cut_off_is_out_the_next_one_in(tmp_path: Path) -> None:
    records = [
        record(1, "Aspirin acts.", "2021-12-31"),
        record(2, "Aspirin helps.", "2022-01-01"),
        record(3, "Aspirin heals.", status="medline"),
    ]
    benchmark = build(tmp_path, records)
    assert prompts_by_article(benchmark) == {"2": ["[Y] helps."]}
    assert dropped(benchmark) == {"abstract before the cut-off": 1, "abstract without a date": 1}


def test_later_files_revise_and_delete(tmp_path: Path) -> None:
    first = [record(number, f"Aspirin has {number} uses.") for number in (1, 2, 3)]
    second = [
        record(1, "Aspirin has one use."),
        "<DeleteCitation><PMID>2</PMID></DeleteCitation>",
        record(4, "Quinine is old."),
    ]
    benchmark = build(tmp_path, first, second)
    assert prompts_by_article(benchmark) == {
        "1": ["[Y] has one use."],
        "3": ["[Y] has 3 uses."],
        "4": ["[Y] is old."],
    }
    assert dropped(benchmark) == {"abstract deleted": 1, "abstract revised": 1}


def test_a_revision_without_prompts_removes_the_old_ones(tmp_path: Path) -> None:
    benchmark = build(tmp_path, [record(1, "Aspirin helps.")], [record(1, "We gave aspirin.")])
    assert prompts_by_article(benchmark) == {}


def test_the_highest_version_wins_whatever_the_order(tmp_path: Path) -> None:
    records = [record(1, "Aspirin is new.", version=2), record(1, "Aspirin is old.", version=1)]
    assert prompts_by_article(build(tmp_path, records)) == {"1": ["[Y] is new."]}


def test_prompts_that_are_alike_are_one_query_with_all_answers(tmp_path: Path) -> None:
    records = [record(1, "Aspirin helps."), record(2, "Quinine helps."), record(3, "BRX2 helps.")]
    queries = build(tmp_path, records).queries
    assert queries["answers"].tolist() == [["aspirin", "quinine"], ["BRX2"]]
    assert queries["pmid"].tolist() == ["1", "3"]


def test_what_workers_elsewhere_read_is_built_alike(working_folder: Path) -> None:
    first = [record(1, "Aspirin is old. We saw."), record(2, "Quinine helps."), record(4, "BRX2.")]
    second = [record(1, "Aspirin is new.", version=2), record(3, "BRX2 acts.", date="2021-01-01")]
    third = ["<DeleteCitation><PMID>2</PMID></DeleteCitation>", record(1, "Aspirin is old.")]
    build(Path("data"), first, second, third).write(Path("here"))
    lipid.build(Path("data"), lipid.Settings(), 0, from_copies).write(Path("there"))
    assert contents(Path("there")) == contents(Path("here"))


def test_appearances_of_entities(tmp_path: Path) -> None:
    texts = ["Aspirin helps. Aspirin heals. Aspirin acts.", "Quinine is old. BRX2 acts."]
    records = [record(number, text) for number, text in enumerate(texts)]
    table = build(tmp_path, records).notes["appearances"].set_index("subset")
    assert table.loc["chem", ["prompts", "entities", "mean", "max", "min"]].tolist() == [
        4,
        2,
        2.0,
        3.0,
        1.0,
    ]
    assert table.loc["gene", "prompts"] == 1


PROMPTS = [("chem", "[MASK] lowers fever.", "aspirin"), ("gene", "Of [MASK].", "BRX2")]
ROWS = [{"type": kind, "prompt": text, "answer": name} for kind, text, name in PROMPTS]


def test_released_prompts_are_queries(tmp_path: Path) -> None:
    path = tmp_path / "lipid/LIPID.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ROWS, indent=1))
    assert [(row.kind, row.prompt, row.entity) for row in released.read(path)] == PROMPTS
    benchmark = lipid_released.build(tmp_path, lipid_released.Settings(), 0)
    assert benchmark.queries["prompt"].tolist() == ["[Y] lowers fever.", "Of [Y]."]
    assert benchmark.queries["sentence"].tolist() == ["aspirin lowers fever.", "Of BRX2."]
    assert benchmark.candidates[["name", "subset"]].to_numpy().tolist() == [
        ["aspirin", "chem"],
        ["BRX2", "gene"],
    ]
    tables = {"queries": benchmark.queries, "candidates": benchmark.candidates, **benchmark.others}
    checks = gate_helpers.failing("lipid_released", tables)
    assert [check for check in checks if check["severity"] != "warning"] == []


def test_released_prompts_in_lines_and_with_two_masks(tmp_path: Path) -> None:
    path = tmp_path / "lipid/LIPID.json"
    path.parent.mkdir()
    rows = [*ROWS, {"type": "gene", "prompt": "[MASK] or [MASK].", "answer": "BRX2"}]
    rows.append({"type": "chem", "prompt": "[MASK]" + " acts" * 400, "answer": "aspirin"})
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    benchmark = lipid_released.build(tmp_path, lipid_released.Settings(max_words=300), 0)
    assert len(benchmark.queries) == 2
    assert benchmark.notes["dropped"].to_numpy().tolist() == [
        ["chem", "too_long", 1],
        ["gene", "not one mask", 1],
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("", "contains no prompts; expected objects with type"),
        ("[]", "contains no prompts"),
        (
            '{"chem": {"aspirin": ["[MASK] acts."]}}',
            "prompt 1: no field 'type', but chem; expected objects",
        ),
        ('[{"prompt": "[MASK] acts.", "type": "chem"}]', "prompt 1: no field 'answer'"),
        ('[{"type": "chem", "prompt": "acts.", "answer": "x"}]', "prompt 1: prompt is 'acts.'"),
        (
            '[{"type": "chemical", "prompt": "[MASK] acts.", "answer": "x"}]',
            "prompt 1: type is 'chemical' .*, expected 'chem' or 'gene'",
        ),
    ],
)
def test_a_file_that_is_no_lipid_is_named(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "LIPID.json"
    path.write_text(content)
    with pytest.raises(BadInput, match=rf"LIPID\.json.*{message}"):
        released.read(path)


def test_a_list_of_which_no_name_occurs_stops_the_gate(tmp_path: Path) -> None:
    benchmark = build(tmp_path, [record(7, "Aspirin helps.")])
    read = benchmark.others["sources"]
    counts = read[read["what"] == "names in prompts"].set_index("name")["rows"].to_dict()
    assert counts == {"chem": 1, "gene": 0}
    failing = gate_helpers.failing("lipid", {**benchmark.others, "queries": benchmark.queries})
    (check,) = (check for check in failing if check["type"] == "expect_column_values_to_be_between")
    assert [row["row"] for row in check["examples"]] == ["entities/genes.txt names in prompts gene"]
