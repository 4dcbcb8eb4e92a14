"""MedLAMA from UMLS files, against a slow and obvious build, and from the released files."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import FolderOf, gate_helpers
from medprobe.core import params
from medprobe.core.benchmark_statistics import statistics, token_statistics
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.papers.medlama.benchmarks import medlama, medlama_released
from medprobe.papers.medlama.benchmarks.medlama.names import SubjectNames, read_names
from medprobe.papers.medlama.benchmarks.medlama.queries import (
    RELATIONS,
    TEMPLATES,
    UNNATURAL,
    default_prompt,
    hardness,
    rouge_l_package,
    rouge_l_released,
)
from medprobe.sources.releases import import_files

SEVEN = (
    "associated_morphology_of",
    "disease_mapped_to_gene",
    "gene_encodes_gene_product",
    "has_physiologic_effect",
    "may_prevent",
    "may_treat",
    "occurs_after",
)

Concept = tuple[str, str, str]  # CUI, AUI, name
Triple = tuple[str, str, str, str, str, str]  # tail CUI and AUI, head CUI and AUI, RELA, SAB


def write_umls(data: Path, concepts: list[Concept], triples: list[Triple]) -> Path:
    folder = data / "umls"
    folder.mkdir(parents=True, exist_ok=True)
    names = [
        f"{cui}|ENG|P|L|PF|S|Y|{aui}||||NCI|PT|X|{name}|0|N||\n" for cui, aui, name in concepts
    ]
    relations = [
        f"{tail}|{aui1}|AUI|RO|{head}|{aui2}|AUI|{rela}|R||{sab}|{sab}||Y|N||\n"
        for tail, aui1, head, aui2, rela, sab in triples
    ]
    (folder / "MRCONSO.RRF").write_text("".join(names), encoding="utf-8", newline="")
    (folder / "MRREL.RRF").write_text("".join(relations), encoding="utf-8", newline="")
    return data


def obvious(concepts: list[Concept], triples: list[Triple], most: int, draw: int) -> list[object]:
    """The full set by the letter of the rule: `(relation, id, subject, answers, ids)`."""
    atom = {aui: name for _, aui, name in concepts}
    last = {cui: name for cui, _, name in sorted(concepts)}
    queries: dict[tuple[str, str, str], dict[str, str]] = {}
    for tail, aui1, head, aui2, rela, sab in sorted(triples):  # as a release is
        if rela in RELATIONS and sab in ("SNOMEDCT_US", "NCI", "MED-RT"):
            subject, answer = atom.get(aui2, last[head]), atom.get(aui1, last[tail])
            queries.setdefault((head, subject, rela), {})[answer] = tail
    rows = []
    for relation in ("may_treat", "may_prevent"):
        frame = pd.DataFrame(
            [
                (relation, head, subject, list(answers), list(answers.values()))
                for (head, subject, rela), answers in sorted(queries.items())
                if rela == relation and len(answers) <= most
            ],
            columns=list("abcde"),
        )
        rows += frame.sample(min(draw, len(frame)), random_state=7).to_numpy().tolist()
    return rows


cuis = st.sampled_from(["C1", "C2", "C3", "C4"])
auis = st.sampled_from(["A1", "A2", "A3", "A4", "A9", ""])
texts = st.sampled_from(["fever", "Fever", "NA", "ibuprofen", 'a "b"', "été", "null"])
relas = st.sampled_from(["may_treat", "may_prevent", "isa", ""])
sabs = st.sampled_from(["NCI", "MED-RT", "MSH"])


@given(
    st.lists(st.tuples(cuis, texts), max_size=4),
    st.lists(st.tuples(cuis, auis, cuis, auis, relas, sabs), min_size=1, max_size=25),
    st.integers(1, 4),
    st.integers(1, 4),
)
def test_the_build_equals_the_obvious_one(
    tmp_path_factory: pytest.TempPathFactory,
    atoms: list[tuple[str, str]],
    triples: list[Triple],
    most: int,
    draw: int,
) -> None:
    named = [(f"C{number}", f"B{number}", f"concept {number}") for number in range(1, 5)]
    concepts = [*named, *((cui, f"A{number}", name) for number, (cui, name) in enumerate(atoms, 1))]
    expected = obvious(concepts, triples, most, draw)
    data = write_umls(tmp_path_factory.mktemp("data"), concepts, triples)
    choices = medlama.Settings(
        relations=("may_treat", "may_prevent"), max_answers=most, per_relation=draw, min_queries=1
    )
    if not expected:
        with pytest.raises(BadInput, match="min_queries leaves no relation"):
            medlama.build(data, choices, 7)
        return
    queries = medlama.build(data, choices, 7).queries
    full = queries[queries["subset"] == "full"]
    columns = ["relation", "subject_id", "subject", "answers", "answer_ids"]
    assert full[columns].to_numpy().tolist() == expected


TREATS: list[Triple] = [
    ("C1", "A1", "C3", "A3", "may_treat", "NCI"),
    ("C2", "A2", "C3", "A3", "may_treat", "NCI"),
    ("C1", "A1", "C4", "A4", "may_treat", "NCI"),
]
CONCEPTS: list[Concept] = [
    ("C1", "A1", "fever"),
    ("C2", "A2", "t(8;21)(q22;q22)"),
    ("C3", "A3", "ibuprofen"),
    ("C4", "A4", "fever powder"),
]


def build(data: Path, **choices: object) -> BenchmarkTables:
    return medlama.build(data, medlama.Settings(relations=("may_treat",), **choices), 2021)


def test_queries_prompts_subsets_and_candidates(tmp_path: Path) -> None:
    benchmark = build(write_umls(tmp_path, CONCEPTS, TREATS))
    indexed = benchmark.queries.set_index("query_id")
    assert sorted(indexed["subject"]) == ["fever powder", "ibuprofen", "ibuprofen"]
    hard = indexed[indexed["subset"] == "hard"].iloc[0]
    assert hard["prompt"] == "ibuprofen might treat [Y] ."
    assert hard["answers"] == ["fever", "t(8;21)(q22;q22)"]
    assert hard.name.removesuffix("-hard") in indexed.index
    easy = indexed[indexed["subject"] == "fever powder"].iloc[0]
    assert (easy["avg_match"], round(easy["avg_rouge_l"], 3)) == (1.0, 0.667)
    names = benchmark.candidates.groupby("subset")["name"].agg(list)
    assert names["full"] == ["fever", "fever powder", "ibuprofen", "t(8;21)(q22;q22)"]
    assert names["hard"] == ["fever", "ibuprofen", "t(8;21)(q22;q22)"]


def test_the_choices(tmp_path: Path) -> None:
    data = write_umls(tmp_path, CONCEPTS, TREATS)
    assert len(build(data, natural_names=True).queries) == 1
    assert build(data, prompts="default").queries["prompt"][0].endswith(" may treat [Y] .")
    assert set(build(data, max_answers=1).queries["subject"]) == {"fever powder"}
    assert len(build(data, per_relation=1).queries.query("subset == 'full'")) == 1
    assert set(build(data, max_match=2, max_rouge_l=2).queries["subset"].value_counts()) == {2}
    with pytest.raises(BadInput, match="min_queries leaves no relation"):
        build(data, min_queries=3)


def test_a_drawn_part_ranks_its_own_names_or_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_umls(tmp_path, CONCEPTS, TREATS)
    whole = build(data)
    assert "ranks are among" not in capsys.readouterr().err
    drawn = build(data, per_relation=1)
    named = len(drawn.candidates.query("subset == 'full'"))
    assert f"ranks are among {named} of 4 names" in capsys.readouterr().err
    every = build(data, per_relation=1, candidates="all")
    assert capsys.readouterr().err == ""
    pd.testing.assert_frame_equal(every.candidates, whole.candidates)
    pd.testing.assert_frame_equal(every.queries, drawn.queries)


def test_a_name_of_two_concepts_has_the_id_that_the_drawn_queries_give(tmp_path: Path) -> None:
    treats = [(f"C{i}", f"A{i}", f"C{i + 5}", f"A{i + 5}", "may_treat", "NCI") for i in (1, 2)]
    names = ["fever", "fever", "", "", "", "ibuprofen", "aspirin"]
    concepts = [(f"C{i}", f"A{i}", name) for i, name in enumerate(names, 1) if name]
    data = write_umls(tmp_path, concepts, treats)
    ids = set()
    for seed in range(6):
        settings = medlama.Settings(relations=("may_treat",), per_relation=1, candidates="all")
        built = medlama.build(data, settings, seed)
        [given] = set(built.queries["answer_ids"].map(tuple))
        fevers = built.candidates.query("name == 'fever'")
        assert set(fevers["id"]) == set(given)
        assert len(built.candidates.query("subset == 'full'")) == 3
        ids |= set(given)
    assert ids == {"C1", "C2"}, "a draw of each"


def test_families_ask_each_query_of_full_under_our_wordings(tmp_path: Path) -> None:
    data = write_umls(tmp_path, CONCEPTS, TREATS)
    alone = build(data)
    built = build(data, families={"at_most": 2})
    is_member = built.queries["subset"] == "families"
    original = built.queries.loc[~is_member, alone.queries.columns]
    pd.testing.assert_frame_equal(original, alone.queries)
    ranked = built.candidates.groupby("subset")["name"].agg(list)
    assert ranked["families"] == ranked["full"]
    families = built.queries[is_member].groupby("family_id")["prompt"].agg(list)
    assert len(families) == 2
    subject = built.queries.set_index("query_id")["subject"][families.index[0]]
    assert families.iloc[0] == [
        template.replace("[X]", subject) for template in TEMPLATES["may_treat"].values()
    ]
    chosen = medlama.Settings(relations=("may_treat",))
    failing = [
        gate_helpers.failing(
            "medlama_released", {"queries": x.queries, "candidates": x.candidates}, chosen
        )
        for x in (alone, built)
    ]
    types = [[check["type"] for check in checks] for checks in failing]
    assert types[0] == types[1]


ATOMS = [  # CUI, AUI, source, term type, language, name, suppressed
    ("C3", "B1", "NCI", "SY", "ENG", "ibuprofen tablet", "N"),
    ("C3", "B2", "NCI", "BN", "ENG", "Brufil", "N"),
    ("C3", "B3", "NCI", "AB", "ENG", "IBU", "N"),
    ("C3", "B4", "NCI", "SY", "ENG", "Ibuprofen", "N"),  # the own name in another case
    ("C3", "B5", "NCI", "SY", "ENG", "old powder", "O"),
    ("C3", "B6", "NCI", "SY", "ENG", "Fever", "N"),  # also the name of C1
    ("C3", "B7", "SCTSPA", "PT", "SPA", "ibuprofeno", "N"),
    ("C8", "B8", "RXNORM", "BN", "ENG", "Advane", "N"),  # RxNorm: a concept of its own
    ("C8", "B9", "NCI", "SY", "ENG", "Advane pill", "N"),
]


def write_atoms(tmp_path: Path) -> Path:
    trade = [("C3", "A3", "C8", "B8", "tradename_of", "RXNORM")]
    data = write_umls(tmp_path, CONCEPTS, [*TREATS, *trade])
    with (data / "umls/MRCONSO.RRF").open("a", encoding="utf-8") as stream:
        for cui, aui, source, kind, language, name, suppressed in ATOMS:
            row = f"{cui}|{language}|P|L|PF|S|Y|{aui}||||{source}|{kind}|X|{name}|0|{suppressed}||"
            stream.write(f"{row}\n")
    return data


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ({"subjects": ["brand"]}, ["brand Advane", "brand Brufil"]),
        (
            {"subjects": ["synonym", "brand"], "at_most": 2},
            ["synonym ibuprofen tablet", "brand Advane"],
        ),
        ({"subjects": ["abbreviation", "SPA"]}, ["abbreviation IBU", "SPA ibuprofeno"]),
        ({"subjects": []}, []),
    ],
)
def test_names_of_subjects_are_by_term_type_and_language(
    tmp_path: Path, names: dict[str, object], expected: list[str]
) -> None:
    family_queries = build(write_atoms(tmp_path), families={"names": names}).queries
    members = family_queries[
        (family_queries["subject_id"] == "C3") & (family_queries["wording"] == "original")
    ]
    kinds_and_subjects = [f"{row.name_kind} {row.subject}" for row in members.itertuples()]
    assert kinds_and_subjects == ["original ibuprofen", *expected]
    assert members["prompt"].tolist() == [
        f"{name} might treat [Y] ." for name in members["subject"]
    ]


def test_a_brand_is_asked_by_its_ingredient(tmp_path: Path) -> None:
    data = write_atoms(tmp_path)
    chosen = SubjectNames(subjects=("ingredient",))
    queries = pd.DataFrame([("q", "C8", "Advane")], columns=["query_id", "subject_id", "subject"])
    assert read_names(data / "umls", queries, chosen)[0] == {}
    path = data / "umls/MRCONSO.RRF"
    path.write_text(
        path.read_text("utf-8").replace("|NCI|PT|X|ibuprofen|", "|RXNORM|IN|X|ibuprofen|")
    )
    assert read_names(data / "umls", queries, chosen)[0] == {"q": [("ingredient", "ibuprofen")]}


def test_an_ambiguous_name_is_left_out_and_counted(tmp_path: Path) -> None:
    data = write_atoms(tmp_path)
    built = build(data, families={"names": {"subjects": ["synonym"]}})
    assert "Fever" not in set(built.queries["subject"])
    sources = built.others["sources"].set_index("name")
    assert sources.loc["ambiguous names", "rows"] == 1


def test_names_leave_the_papers_queries_as_they_are(tmp_path: Path) -> None:
    data = write_atoms(tmp_path)
    alone = build(data)
    built = build(data, families={"names": {"subjects": ["preferred", "brand", "synonym"]}})
    own_queries = built.queries[built.queries["family_id"] == ""]
    pd.testing.assert_frame_equal(own_queries[alone.queries.columns], alone.queries)
    assert built.candidates[built.candidates["subset"] != "families"].equals(alone.candidates)


def test_an_unknown_kind_of_name_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no kind of name 'brands' .did you mean 'brand'"):
        SubjectNames(subjects=("brands",))


def test_every_relation_has_four_further_wordings_that_differ() -> None:
    wordings = ["original", "ours-1", "ours-2", "ours-3", "ours-4"]
    for relation in RELATIONS:
        templates = TEMPLATES[relation]
        assert [*templates] == wordings and len({*templates.values()}) == 5
        assert all(text.count("[X]") == text.count("[Y]") == 1 for text in templates.values())
        assert all(text.endswith(" .") for text in templates.values())


@pytest.mark.parametrize("name", ["t(8;21)(q22;q22)", "AML with inv(16)(p13.1q22)", "del(5q)"])
def test_karyotypes_are_unnatural(name: str) -> None:
    assert re.search(UNNATURAL, name)


@pytest.mark.parametrize("name", ["Protein p53 (p53)", "Factor(8)", "Vitamin D(3)", "iron(2+) ion"])
def test_other_names_with_brackets_are_natural(name: str) -> None:
    assert not re.search(UNNATURAL, name)


def test_preferred_names_leave_out_concepts_without_one(tmp_path: Path) -> None:
    write_umls(tmp_path, CONCEPTS, TREATS)
    path = tmp_path / "umls/MRCONSO.RRF"
    text = path.read_text().replace("C2|ENG", "C2|FRE").replace("C1|ENG|P", "C1|ENG|S")
    path.write_text(text + "C1|ENG|P|L|PF|S|Y|A5||||NCI|PT|X|pyrexia|0|N||\n")
    benchmark = build(tmp_path, names="preferred")
    assert {tuple(names) for names in benchmark.queries["answers"]} == {("pyrexia",)}
    assert build(tmp_path).queries["answers"].map(len).max() == 2


def test_subjects_that_look_like_slots_stay_as_they_are(tmp_path: Path) -> None:
    concepts = [*CONCEPTS[:2], ("C3", "A3", "[X]Other pain"), CONCEPTS[3]]
    benchmark = build(write_umls(tmp_path, concepts, TREATS))
    assert "[X]Other pain might treat [Y] ." in set(benchmark.queries["prompt"])


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"umls/MRREL.RRF: no such file"):
        build(tmp_path)
    write_umls(tmp_path, CONCEPTS, TREATS)
    with pytest.raises(BadInput, match="no query of relation may_prevent; name the relations"):
        medlama.build(tmp_path, medlama.Settings(relations=("may_treat", "may_prevent")), 1)
    write_umls(tmp_path, CONCEPTS[:3], TREATS)
    with pytest.raises(BadInput, match=r"MRREL.RRF, line 3: C4 has no name in MRCONSO.RRF"):
        build(tmp_path)
    with pytest.raises(BadInput, match=r"no relation 'may_trea' \(did you mean 'may_treat'\?\)"):
        params.parse_section(medlama.Settings, {"relations": ["may_trea"]}, "params.yaml")


def test_hardness_by_hand() -> None:
    assert hardness("Dengue vaccine", ["Dengue"])[0] == 1.0
    # the released rule keeps the blank before `||`, so the first name is no longer a part
    assert hardness("Dengue", ["Dengue", "Fever"])[0] == 0.0
    assert hardness("Dengue", ["Dengue", "Fever"], "rouge_score")[0] == 0.5
    # words are sets, and a full stop ends a sentence
    assert rouge_l_released("a a b", "a b") == pytest.approx(1.0)
    assert rouge_l_released("b. a", "a b") == pytest.approx(1.0)
    assert rouge_l_package("b. a", "a b") == pytest.approx(0.5)
    assert rouge_l_released("...", "a") == 0.0
    with pytest.raises(ValueError, match="without answers"):
        hardness("a", [])


@given(st.text("ab .", max_size=12), st.text("ab .", max_size=12))
def test_rouge_l_is_a_symmetric_share(first: str, second: str) -> None:
    for rule in (rouge_l_released, rouge_l_package):
        assert 0 <= rule(first, second) <= 1
    assert rouge_l_released(first, first) == pytest.approx(1.0 if first.strip(".") else 0.0)


def test_statistics(tmp_path: Path) -> None:
    benchmark = build(write_umls(tmp_path, CONCEPTS, TREATS))
    table = statistics(benchmark).set_index(["subset", "relation"])
    every = table.loc[("full", "all")]
    assert (every["queries"], every["answers"], every["distinct_answers"]) == (2, 3, 2)
    assert (every["answers_per_query"], every["candidates"]) == (1.5, 4)
    assert every["answer_characters"] == ((5 + 16) / 2 + 5) / 2
    tokens = token_statistics(benchmark, lambda texts: [len(text.split("(")) for text in texts])
    row = tokens.set_index("subset").loc["full"]
    assert (row["tokens_per_answer"], row["single_token"]) == (2.0, 0.5)
    assert row[row == 0.5].index.tolist() == ["single_token", "answers_of_1", "answers_of_3"]
    long = token_statistics(benchmark, lambda texts: [11 + len(text) for text in texts])
    assert long["answers_of_more"].tolist() == [1.0] * len(long)


def test_single_tokens_are_counted_by_relation(tmp_path: Path) -> None:
    benchmark = build(write_umls(tmp_path, CONCEPTS, TREATS))
    other = benchmark.queries.iloc[:1].assign(relation="other", answers=[["a (b"]])
    both = replace(benchmark, queries=pd.concat([benchmark.queries, other]))
    table = token_statistics(both, lambda texts: [len(text.split("(")) for text in texts])
    row = table.set_index("subset").loc["full"]
    assert row["single_token"] == (0.5 + 0) / 2  # pooled: a third
    assert row["tokens_per_answer"] == 2


def write_released(folder: Path, **changes: str) -> Path:
    """A released full file and hard file of one query, with some values changed."""
    folder.mkdir()
    row = {
        "head_cui": "C1",
        "head_name": "ibuprofen",
        "rel": "may_treat",
        "tail_cuis_list": "['C2', 'C3', 'C3']",
        "tail_names_list": "['fever', 'pain', 'pain']",
        "tail_names": "fever || pain",
        "tail_cuis": "C2 || C3",
        "tail_cuis_len": "2",
        "tail_names_len": "2",
        "avg_match": "0.0",
        "avg_rouge_l": "0.0",
    }
    row = {**row, **changes}
    for name in ["may_treat_1.csv", "may_treat_1_hard.csv"]:
        with (folder / name).open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, [column for column in row if row[column] != "drop"])
            writer.writeheader()
            writer.writerow({key: value for key, value in row.items() if value != "drop"})
    return folder


def test_sound_released_files_are_imported_and_built(tmp_path: Path) -> None:
    import_files("medlama", write_released(tmp_path / "released"), tmp_path / "data")
    settings = medlama_released.MedlamaSettings(relations=("may_treat",))
    benchmark = medlama_released.build(tmp_path / "data", settings, 2021)
    assert benchmark.queries["answers"].tolist() == [["fever", "pain"]] * 2
    assert benchmark.queries["answer_ids"].tolist() == [["C2", "C3"]] * 2


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"avg_match": "drop"}, "may_treat_1.csv, line 1: no column 'avg_match'"),
        ({"tail_cuis_list": "['C2', 'C3']"}, "line 2: 2 tail_cuis_list but 3 tail_names_list"),
        ({"tail_cuis_len": "3"}, "line 2: tail_cuis_len does not match the lists"),
        ({"rel": "may_prevent"}, "line 2: rel is 'may_prevent', expected 'may_treat'"),
    ],
)
def test_unsound_released_files_are_refused(
    tmp_path: Path, changes: dict[str, str], problem: str
) -> None:
    write_released(tmp_path / "medlama", **changes)
    with pytest.raises(BadInput) as error:
        medlama_released.build(tmp_path, medlama_released.MedlamaSettings(), 2021)
    assert problem in str(error.value)


def test_missing_or_odd_released_files_are_refused(tmp_path: Path) -> None:
    settings = medlama_released.MedlamaSettings()
    with pytest.raises(BadInput, match="medlama: no such folder"):
        medlama_released.build(tmp_path, settings, 2021)
    folder = write_released(tmp_path / "medlama")
    (folder / "may_treat_1.csv").rename(folder / "may_treat_2.csv")
    with pytest.raises(BadInput, match=r"may_treat_2.csv: 1 rows, expected 2 according"):
        medlama_released.build(tmp_path, settings, 2021)
    (folder / "may_treat_2.csv").write_bytes(b"head_cui\n\xff\n")
    with pytest.raises(BadInput, match=r"may_treat_2.csv, line 1: no column 'head_name'"):
        medlama_released.build(tmp_path, settings, 2021)
    for path in folder.iterdir():
        path.unlink()
    with pytest.raises(BadInput, match="no file <relation>"):
        medlama_released.build(tmp_path, settings, 2021)


def test_the_released_relations_come_out_identical(released_data: FolderOf, tmp_path: Path) -> None:
    folder = released_data("medlama")
    import_files("medlama", folder, tmp_path)
    hard = [158, 984, 821, 983, 861, 977, 623]
    benchmark = medlama_released.build(
        tmp_path, medlama_released.MedlamaSettings(relations=SEVEN), 2021
    )
    assert (benchmark.candidates["subset"] == "full").sum() == 11_799
    for relation, count in zip(SEVEN, hard, strict=True):
        for which, name in [("full", f"{relation}_1000"), ("hard", f"{relation}_{count}_hard")]:
            file = pd.read_csv(folder / f"{name}.csv", keep_default_na=False)
            subset_queries = benchmark.queries[benchmark.queries["subset"] == which]
            part = subset_queries[subset_queries["relation"] == relation]
            assert part["subject"].tolist() == file["head_name"].tolist()
            assert [" || ".join(names) for names in part["answers"]] == file["tail_names"].tolist()
            assert part["avg_rouge_l"].tolist() == file["avg_rouge_l"].tolist()


def test_the_released_prompts_are_ours(released_data: FolderOf) -> None:
    prompts = pd.read_csv(released_data("medlama") / "prompts.csv").set_index("pid")
    human = {relation: templates["original"] for relation, templates in TEMPLATES.items()}
    assert prompts["human_prompt"].to_dict() == human
    ours = {name: default_prompt(name) for name in prompts.index}
    assert {
        name: " ".join(text.split()) for name, text in prompts["default_prompt"].items()
    } == ours
