"""A benchmark from a table of one's own: its forms, its rules, and what is refused. Its way to the
leaderboard is in test_pipeline.py."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from helpers import gate_helpers
from medprobe.benchmarks import table
from medprobe.benchmarks.families import AliasFamilies
from medprobe.core import benchmark_statistics
from medprobe.core.errors import BadInput
from medprobe.core.tables import BenchmarkTables
from medprobe.methods.mask_average import MaskAverage
from medprobe.sources import facts, parquet

ROWS = [
    {
        "subject": "stovumol",
        "relation": "treats",
        "object": "Karsten syndrome",
        "aliases": "KS|Karsten's",
    },
    {"subject": "stovumol", "relation": "treats", "object": "chronic pain", "aliases": ""},
    {"subject": "brenavir", "relation": "treats", "object": "flu", "aliases": ""},
]
PROMPTS = "relation,template\ntreats,[X] is given for [Y] .\n"


def write(
    data: Path, content: str, name: str = "facts.csv", prompts: str = PROMPTS
) -> table.Settings:
    folder = data / "tables"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(content, encoding="utf-8")
    (folder / "prompts.csv").write_text(prompts, encoding="utf-8")
    return table.Settings(facts=Path("tables") / name, prompts=Path("tables/prompts.csv"))


def csv(rows: list[dict[str, str]] = ROWS) -> str:
    return pd.DataFrame(rows).to_csv(index=False)


def build_benchmark(data: Path, settings: table.Settings) -> BenchmarkTables:
    return table.build(data, settings, 0)


def test_objects_of_a_subject_are_one_query_and_aliases_are_answers(tmp_path: Path) -> None:
    built = build_benchmark(tmp_path, write(tmp_path, csv()))
    first, second = built.queries.to_dict("records")
    assert first["prompt"] == "stovumol is given for [Y] ."
    assert first["answers"] == ["Karsten syndrome", "KS", "Karsten's", "chronic pain"]
    assert first["answer_ids"] == ["Karsten syndrome"] * 3 + ["chronic pain"]
    assert (second["query_id"], second["answers"]) == ("treats/brenavir", ["flu"])
    assert list(built.candidates["name"]) == ["Karsten syndrome", "chronic pain", "flu"]


def test_all_forms_give_the_same_benchmark(tmp_path: Path) -> None:
    listed = [{**row, "aliases": [n for n in row["aliases"].split("|") if n]} for row in ROWS]
    write(tmp_path, csv())
    write(tmp_path, csv().replace(",", "\t"), "facts.tsv")
    missing = {"type": None, "prompt_other": None}  # as pandas writes what is missing
    lines = "".join(json.dumps(row | missing) + "\n" for row in listed)
    write(tmp_path, lines, "facts.jsonl")
    pd.DataFrame(listed).to_parquet(tmp_path / "tables/facts.parquet")
    names = {"sub_label": "subject", "predicate_id": "relation", "obj_label": "object"}
    foreign = {ours: theirs for theirs, ours in names.items()} | {"aliases": "obj_aliases"}
    write(tmp_path, pd.DataFrame(ROWS).rename(columns=foreign).to_csv(index=False), "lama.csv")
    first = build_benchmark(tmp_path, write(tmp_path, csv()))
    for name in ("facts.tsv", "facts.jsonl", "facts.parquet", "lama.csv"):
        settings = table.Settings(facts=Path("tables", name), prompts=Path("tables/prompts.csv"))
        other = build_benchmark(tmp_path, settings)
        pd.testing.assert_frame_equal(first.queries, other.queries)
        pd.testing.assert_frame_equal(first.candidates, other.candidates)


def test_a_partitioned_folder_gives_its_rows_their_relation(tmp_path: Path) -> None:
    rows = [("a", "may treat", "gout"), ("b", "causes", "fever")]
    table = pd.DataFrame(rows, columns=["subject", "relation", "object"])
    table.to_parquet(tmp_path / "facts", partition_cols=["relation"])
    read = [
        (fact.subject, fact.relation, fact.object) for _, fact in facts.read(tmp_path / "facts")
    ]
    assert sorted(read) == rows
    table.drop(columns="relation").to_parquet(tmp_path / "facts/part-00000-of-00002.parquet")
    with pytest.raises(BadInput, match=r"part-00000.*row 1: no field 'relation'"):
        list(facts.read(tmp_path / "facts"))  # a shard's name is no relation
    gap = table.assign(relation=["causes", None])
    gap.to_parquet(tmp_path / "gap", partition_cols=["relation"])
    with pytest.raises(BadInput, match="row 1: no field 'relation'"):
        list(facts.read(tmp_path / "gap"))
    (tmp_path / "other/x").mkdir(parents=True)
    table.to_parquet(tmp_path / "other/x/part.parquet")
    with pytest.raises(BadInput, match="in subfolders only where they are relation=NAME"):
        list(facts.read(tmp_path / "other"))


def test_a_folder_of_relations_with_their_templates_in_json(tmp_path: Path) -> None:
    folder = tmp_path / "tables/BEAR"
    folder.mkdir(parents=True)
    for relation, answer in (("P1", "Oslo"), ("P2", "Bern")):
        row = {"sub_id": "Q1", "sub_label": "Norway", "obj_id": "Q2", "obj_label": answer}
        (folder / f"{relation}.jsonl").write_text(json.dumps(row))
    (folder / "._P1.jsonl").write_bytes(b"\x00\xff of a Mac")
    about = {name: {"templates": ["[X] has [Y] .", "[Y] is of [X] ."]} for name in ("P1", "P2")}
    (tmp_path / "tables/metadata_relations.json").write_text(json.dumps(about))
    prompts = Path("tables/metadata_relations.json")
    built = build_benchmark(tmp_path, table.Settings(facts=Path("tables/BEAR"), prompts=prompts))
    assert list(built.queries["relation"]) == ["P1", "P2"]
    assert list(built.queries["prompt"]) == ["Norway has [Y] ."] * 2
    assert list(built.candidates["id"]) == ["Q2", "Q2"]


FAMILIES = AliasFamilies()


def write_bear(data: Path) -> table.Settings:
    """Two relations in lm-pub-quiz's layout, one with an answer space and two templates."""
    folder = data / "tables/BEAR"
    folder.mkdir(parents=True)
    rows = [("P1", "Norway", "Oslo"), ("P1", "Swiss", "Bern"), ("P2", "Norway", "crown")]
    for relation in ("P1", "P2"):
        facts_of_relation = [
            json.dumps({"sub_id": f"Q-{subject}", "sub_label": subject, "obj_label": answer})
            for name, subject, answer in rows
            if name == relation
        ]
        (folder / f"{relation}.jsonl").write_text("\n".join(facts_of_relation))
    about = {
        "P1": {
            "templates": ["[X] has [Y] .", "[Y] is of [X] ."],
            "answer_space_labels": ["Oslo", "Bern", "Paris"],
            "answer_space_ids": ["Q4", "Q5", "Q6"],
        },
        "P2": {"templates": ["[X] pays in [Y] ."]},
    }
    path = data / "tables/metadata_relations.json"
    path.write_text(json.dumps(about))
    prompts = Path("tables/metadata_relations.json")
    return table.Settings(facts=Path("tables/BEAR"), prompts=prompts, families=FAMILIES)


def test_all_templates_and_the_answer_space_of_lm_pub_quiz_are_used(tmp_path: Path) -> None:
    built = build_benchmark(tmp_path, write_bear(tmp_path))
    own_queries = built.queries[built.queries["subset"] == "full"]
    family = built.queries[built.queries["family_id"] == "P1/Q-Norway"]
    assert list(own_queries["prompt"]) == [
        "Norway has [Y] .",
        "Swiss has [Y] .",
        "Norway pays in [Y] .",
    ]
    assert list(family["prompt"]) == ["Norway has [Y] .", "[Y] is of Norway ."]
    assert list(family["wording"]) == ["original", "2"]
    assert set(built.queries["family_id"]) == {
        "",
        "P1/Q-Norway",
        "P1/Q-Swiss",
    }  # P2 has one wording
    ranked = {
        task.name: sorted(task.candidates["name"])
        for task in object.__new__(MaskAverage).tasks(built, 10)
    }
    assert ranked["P1/families"] == ranked["P1/full"] == ["Bern", "Oslo", "Paris"]
    assert ranked["P2/full"] == ["Bern", "Oslo", "Paris", "crown"]
    counts = benchmark_statistics.statistics(built).set_index(["subset", "relation"])
    assert counts.loc[("full", "P1"), "chance_at_1"] == pytest.approx(1 / 3)


def test_an_object_is_what_the_answer_space_calls_it(tmp_path: Path) -> None:
    settings = write_bear(tmp_path)
    row = {"sub_id": "Q1", "sub_label": "Norway", "sub_aliases": ["Norge"], "answer_idx": 0}
    row |= {"obj_id": "Q4", "obj_label": "Christiania"}
    (tmp_path / "tables/BEAR/P1.jsonl").write_text(json.dumps(row))
    tables = build_benchmark(tmp_path, settings)
    query = tables.queries[tables.queries["relation"] == "P1"].iloc[0]
    assert list(query["answers"]) == ["Oslo", "Christiania"]
    assert list(query["answer_ids"]) == ["Q4", "Q4"]
    ids = tables.candidates.query("subset == 'full'").set_index("name")["id"]
    assert ids.to_dict() == {"Bern": "Q5", "Oslo": "Q4", "Paris": "Q6", "crown": "crown"}
    members = tables.queries[tables.queries["family_id"] == "P1/Q1"]
    assert list(members["subject"]) == ["Norway", "Norge"] * 2


@pytest.mark.parametrize(
    ("ids", "problem"),
    [
        (["Q4", "Q5"], "2 answer_space_ids for 3 answer_space_labels"),
        (["Q4", "Q5", "Q5"], "answer_space_ids has an entry twice"),
    ],
)
def test_identifiers_of_an_answer_space_that_do_not_fit_are_refused(
    tmp_path: Path, ids: list[str], problem: str
) -> None:
    settings = write_bear(tmp_path)
    path = tmp_path / "tables/metadata_relations.json"
    about = json.loads(path.read_text())
    about["P1"]["answer_space_ids"] = ids
    path.write_text(json.dumps(about))
    with pytest.raises(BadInput, match=rf"relation P1: {problem}"):
        build_benchmark(tmp_path, settings)


def test_families_leave_the_benchmarks_own_queries_as_they_are(tmp_path: Path) -> None:
    rows = [{**row, "prompt_short": f"{row['subject']} : [Y]"} for row in ROWS]
    settings = write(tmp_path, csv(rows))
    alone = build_benchmark(tmp_path, settings)
    with_families = settings.model_copy(update={"families": FAMILIES})
    built = build_benchmark(tmp_path, with_families)
    own_queries = built.queries[built.queries["subset"] == "full"]
    pd.testing.assert_frame_equal(own_queries[alone.queries.columns], alone.queries)
    assert built.candidates[built.candidates["subset"] == "full"].equals(alone.candidates)
    assert list(built.queries["wording"]) == ["", "", "original", "short", "original", "short"]
    single_family = with_families.model_copy(update={"families": AliasFamilies(at_most=1)})
    drawn = build_benchmark(tmp_path, single_family).queries
    assert len(drawn[drawn["subset"] == "families"]) == 2  # one family, whole
    with pytest.raises(BadInput, match="no query has a second wording"):
        build_benchmark(tmp_path, write(tmp_path, csv()).model_copy(update={"families": FAMILIES}))


def test_wordings_multiply_with_the_names_of_subjects(tmp_path: Path) -> None:
    rows = [{**ROWS[2], "subject_aliases": "Brena|BRV"}]
    prompts = (
        "relation,wording,template\ntreats,,[X] is given for [Y] .\n"
        "treats,passive,[Y] is treated by [X] .\n"
    ).replace("treats,,", "treats,plain,")
    settings = write(tmp_path, csv(rows), prompts=prompts)
    built = build_benchmark(tmp_path, settings.model_copy(update={"families": FAMILIES}))
    members = built.queries[built.queries["subset"] == "families"]
    assert list(members["prompt"]) == [
        "brenavir is given for [Y] .",
        "Brena is given for [Y] .",
        "BRV is given for [Y] .",
        "[Y] is treated by brenavir .",
        "[Y] is treated by Brena .",
        "[Y] is treated by BRV .",
    ]
    assert list(members["name_kind"]) == ["original", "alias", "alias"] * 2
    assert members["query_id"].is_unique
    assert set(members["subject_id"]) == {"brenavir"}


@pytest.mark.parametrize(
    ("rows", "prompts"),
    [
        (ROWS, "treats,b,[X] is without influence on [Y] .\n"),  # `flu` within a word
        (ROWS, "treats,b,[X] is given for [Y]\n"),  # another end is another prompt
        (  # one subject has both rows, so the name is of one concept
            [{**ROWS[2], "subject_aliases": "Brena"}, {**ROWS[2], "object": "fever"}],
            "treats,b,[X] ends [Y] .\n",
        ),
    ],
)
def test_the_gate_passes_families_that_only_look_wrong(
    tmp_path: Path, rows: list[dict[str, str]], prompts: str
) -> None:
    header = "relation,wording,template\ntreats,a,[X] is given for [Y] .\n"
    settings = write(tmp_path, csv(rows), prompts=header + prompts)
    settings = settings.model_copy(update={"families": FAMILIES})
    built = build_benchmark(tmp_path, settings)
    assert (built.queries["subset"] == "families").any()
    tables = {"queries": built.queries, "candidates": built.candidates, **built.others}
    assert gate_helpers.failing("table", tables, settings) == []


def test_an_object_outside_its_answer_space_is_refused(tmp_path: Path) -> None:
    settings = write_bear(tmp_path)
    path = tmp_path / "tables/BEAR/P1.jsonl"
    path.write_text(json.dumps({"sub_label": "Italy", "obj_label": "Rome"}))
    with pytest.raises(BadInput, match=r"P1\.jsonl, line 1: the object is not in the answer space"):
        build_benchmark(tmp_path, settings)


@pytest.mark.parametrize(
    ("cell", "names"),
    [
        ("KS|Karsten's", ["KS", "Karsten's"]),
        ("KS; Karsten's", ["KS", "Karsten's"]),
        ("KS; type 2 | K", ["KS; type 2", "K"]),
        ("['KS', \"Karsten's\"]", ["KS", "Karsten's"]),
        ('["KS", "K"]', ["KS", "K"]),
        ("('KS', 'K')", ["KS", "K"]),
        ("[]", []),
        ("(KS)", ["(KS)"]),
    ],
)
def test_a_cell_with_several_names_is_read_as_its_program_wrote_it(
    tmp_path: Path, cell: str, names: list[str]
) -> None:
    row = {**ROWS[0], "aliases": cell}
    built = build_benchmark(tmp_path, write(tmp_path, csv([row])))
    assert built.queries["answers"][0] == ["Karsten syndrome", *names]


@pytest.mark.parametrize("cell", ["['KS' 'K']", "['KS', 1]", "['KS', 'K'", "[KS]"])
def test_a_list_that_cannot_be_read_is_refused(tmp_path: Path, cell: str) -> None:
    settings = write(tmp_path, csv([{**ROWS[0], "aliases": cell}]))
    if not cell.endswith("]"):
        assert build_benchmark(tmp_path, settings).queries["answers"][0][1] == cell
        return
    with pytest.raises(BadInput, match=r"line 2: aliases is .*, expected names between \|"):
        build_benchmark(tmp_path, settings)


@pytest.mark.parametrize(
    ("column", "meant"),
    [
        *((name, "aliases") for name in ("alias", "Aliases", "ALIASES ")),
        ("objects_aliases", "object_aliases"),
        ("obj_alias", "obj_aliases"),
        ("subject_alias", "subject_aliases"),
        ("object id", "object_id"),
        ("prompts", "prompt"),
        ("Type", "type"),
    ],
)
def test_a_column_that_is_nearly_a_known_one_is_refused(
    tmp_path: Path, column: str, meant: str
) -> None:
    settings = write(tmp_path, csv([{**ROWS[2], column: "x"} | {}]).replace(",aliases", ",other"))
    with pytest.raises(
        BadInput, match=rf"unknown field '{column.strip()}' \(did you mean '{meant}'"
    ):
        build_benchmark(tmp_path, settings)


def test_columns_that_are_like_no_known_one_are_passed_over(tmp_path: Path) -> None:
    row = {**ROWS[0], "relation_id": "R1", "comment": "x", "year": "2020", "": "0"}
    assert len(build_benchmark(tmp_path, write(tmp_path, csv([row]))).queries) == 1


def test_a_required_column_of_another_case_is_named(tmp_path: Path) -> None:
    settings = write(tmp_path, csv().replace("subject", "SUBJECT"))
    with pytest.raises(BadInput, match=r"no field 'subject' \(did you mean 'SUBJECT'\?\)"):
        build_benchmark(tmp_path, settings)


@pytest.mark.parametrize("rows", [",,,\n", ",,,\n" * 1000, " , , , \n,,,\n"])
def test_rows_without_text_below_a_table_are_passed_over(tmp_path: Path, rows: str) -> None:
    assert len(build_benchmark(tmp_path, write(tmp_path, csv() + rows)).queries) == 2


@pytest.mark.parametrize("start", ["", "sep=;\n"])
def test_semicolons_between_fields_are_named_also_where_names_hold_commas(
    tmp_path: Path, start: str
) -> None:
    rows = pd.DataFrame([{**ROWS[0], "object": "fever, acute"}]).to_csv(index=False, sep=";")
    with pytest.raises(BadInput, match="separate the fields by commas, not by semicolons"):
        build_benchmark(tmp_path, write(tmp_path, start + rows))


def test_a_spreadsheets_line_about_commas_is_no_row(tmp_path: Path) -> None:
    assert len(build_benchmark(tmp_path, write(tmp_path, "sep=,\n" + csv())).queries) == 2


@pytest.mark.parametrize(
    ("cell", "name"),
    [
        ('"low back pain', '"low back pain'),
        ('2" scar', '2" scar'),
        ('"gout"', '"gout"'),
        ('"the ""big"" one"', 'the "big" one'),
    ],
)
def test_a_quote_in_tsv_is_a_character_unless_a_program_quoted_it(
    tmp_path: Path, cell: str, name: str
) -> None:
    rows = [["a", "treats", cell], ["b", "treats", 'flu"'], ["c", "treats", '"x']]
    lines = ["subject\trelation\tobject", *map("\t".join, rows)]
    built = build_benchmark(tmp_path, write(tmp_path, "\n".join(lines) + "\n", "facts.tsv"))
    assert [answers[0] for answers in built.queries["answers"]] == [name, 'flu"', '"x']


def test_a_tsv_file_whose_columns_are_quoted_quotes_all(tmp_path: Path) -> None:
    content = pd.DataFrame(ROWS).to_csv(index=False, sep="\t", quoting=1)
    built = build_benchmark(tmp_path, write(tmp_path, content, "facts.tsv"))
    assert built.queries["answers"][0][0] == "Karsten syndrome"


def test_a_key_of_json_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    settings = write(tmp_path, csv())
    path = tmp_path / "tables/prompts.json"
    path.write_text('{"treats": {"templates": ["[X] [Y]"]}, "treats": {"templates": ["[Y] [X]"]}}')
    with pytest.raises(BadInput, match="a key of an object occurs twice"):
        build_benchmark(tmp_path, settings.model_copy(update={"prompts": path}))
    (tmp_path / "tables/facts.jsonl").write_text(
        '{"subject": "a", "subject": "b", "relation": "treats", "object": "c"}\n'
    )
    facts_file = settings.model_copy(update={"facts": Path("tables/facts.jsonl")})
    with pytest.raises(BadInput, match="line 1: a key of an object occurs twice"):
        build_benchmark(tmp_path, facts_file)


def test_ids_of_queries_never_meet(tmp_path: Path) -> None:
    """The second prompt of IL, subjects that are called as its id would be, and slashes."""
    cells = [("IL", "x"), ("IL", "y"), ("IL/2", "z"), ("IL%2F2", "z"), ("IL/2", "y")]
    rows = [
        {"subject": s, "relation": "treats", "object": o, "prompt": f"{s} {o} is [Y] ."}
        for s, o in cells
    ]
    ids = build_benchmark(tmp_path, write(tmp_path, csv(rows))).queries["query_id"]
    assert ids.is_unique and list(ids[:3]) == ["treats/IL", "treats/IL/2", "treats/IL%2F2"]


def test_ready_prompts_need_no_templates(tmp_path: Path) -> None:
    rows = [{**row, "prompt": f"for [Y] take {row['subject']}"} for row in ROWS]
    rows.append({**ROWS[2], "prompt": "brenavir ends [Y]"})
    write(tmp_path, csv(rows))
    built = build_benchmark(tmp_path, table.Settings(facts=Path("tables/facts.csv")))
    assert list(built.queries["query_id"]) == [
        "treats/stovumol",
        "treats/brenavir",
        "treats/brenavir/2",
    ]
    assert list(built.queries["prompt"])[2] == "brenavir ends [Y]"


@pytest.mark.parametrize(
    ("name", "content", "prompts", "says"),
    [
        ("facts.csv", "subject,object\na,b\n", PROMPTS, "line 2: no field 'relation'"),
        (
            "facts.csv",
            "drug,relation,object\na,b,c\n",
            PROMPTS,
            "no field 'subject', but drug; a row",
        ),
        (
            "facts.csv",
            "a,treats,b\nc,treats,d\n",
            PROMPTS,
            "treats, b (is the header missing?)",
        ),
        ("facts.csv", "subject,relation,object\na,treats,\n", PROMPTS, "line 2: object is empty"),
        ("facts.csv", "subject,relation,object\n", PROMPTS, "no rows"),
        ("facts.csv", csv().replace("treats", "treat"), PROMPTS, "did you mean 'treats'?"),
        (
            "facts.csv",
            csv(),
            "relation,template\ntreats,[X] treats\n",
            "template has no [Y]; write [X] once, for the subject, and [Y] once",
        ),
        ("facts.csv", csv(), PROMPTS.replace("[X]", "{s}"), "template has no [X]; write [X] once"),
        (
            "facts.csv",
            csv(),
            PROMPTS + "treats,[Y] by [X]\n",
            "line 3: relation treats already has a template",
        ),
        ("facts.csv", csv([{**ROWS[0], "subject": "[Y]"}]), PROMPTS, "exactly one [Y], and has 2"),
        ("facts.csv", "subject;relation;object\na;b;c\n", PROMPTS, "by commas, not by semicolons"),
        ("facts.xls", "no", PROMPTS, "files of facts end in .csv, .tsv, .jsonl, .parquet"),
    ],
)
def test_what_is_amiss_is_said_in_a_line(
    tmp_path: Path, name: str, content: str, prompts: str, says: str
) -> None:
    with pytest.raises(BadInput) as error:
        build_benchmark(tmp_path, write(tmp_path, content, name, prompts))
    assert says in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("bound", [(parquet, "MOST_ROWS"), (facts, "LARGEST")])
def test_a_small_file_of_parquet_that_holds_too_much_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bound: tuple[Any, str]
) -> None:
    settings = write(tmp_path, "", "facts.parquet")
    pd.DataFrame(ROWS).to_parquet(tmp_path / "tables/facts.parquet")
    build_benchmark(tmp_path, settings)
    monkeypatch.setattr(*bound, 2)
    with pytest.raises(BadInput, match=rf"{len(ROWS)} rows of [\d,]+ bytes unzipped, expected at"):
        build_benchmark(tmp_path, settings)


def test_the_documents_example_builds_as_it_says(tmp_path: Path) -> None:
    document = gate_helpers.EXPECTATIONS.parent / "docs/how-to/own-data.md"
    page = document.read_text(encoding="utf-8")
    rows, prompts = (
        block for block in page.split("```\n") if block.startswith(("subject,", "relation,"))
    )
    (block,) = (b for b in page.split("```yaml\n") if b.startswith("benchmarks:\n  table:"))
    params = yaml.safe_load(block.partition("```")[0])
    write(tmp_path, rows, "drugs.csv", prompts)
    settings = table.Settings(**params["benchmarks"]["table"]["drugs"])
    build_benchmark(tmp_path, settings.model_copy(update={"prompts": Path("tables/prompts.csv")}))
    assert settings.prompts == Path("tables/prompts.csv")
    assert "drugs" in params["methods"]["masked"]["mask_average"]


def many(relations: dict[str, int]) -> str:
    rows = [
        {
            "subject": f"{relation}{i}",
            "relation": relation,
            "object": f"o{i % 2}",
            "prompt": "[X] [Y]",
        }
        for relation, count in relations.items()
        for i in range(count)
    ]
    return csv(rows)


def test_subjects_kept_out_are_told_and_not_asked(tmp_path: Path) -> None:
    settings = write(tmp_path, many({"a": 5, "b": 3}))
    built = build_benchmark(tmp_path, settings.model_copy(update={"keep_out": 2}))
    told = built.others["train"]
    assert told["relation"].value_counts().to_dict() == {"a": 2, "b": 2}
    assert built.queries["relation"].value_counts().to_dict() == {"a": 3, "b": 1}
    assert not {*told["subject"]} & {*built.queries["subject"]}
    assert {*built.candidates["name"]} == {"o0", "o1"}
    again = build_benchmark(tmp_path, settings.model_copy(update={"keep_out": 2}))
    pd.testing.assert_frame_equal(again.others["train"], told)
    with pytest.raises(BadInput, match="relation b has 3 subjects, keep_out: 3; keep fewer out"):
        build_benchmark(tmp_path, settings.model_copy(update={"keep_out": 3}))


def test_a_file_of_facts_is_told(tmp_path: Path) -> None:
    settings = write(tmp_path, csv())
    (tmp_path / "tables/train.csv").write_text(
        "subject,relation,object\nvelotrine,treats,ague\n", encoding="utf-8"
    )
    built = build_benchmark(
        tmp_path, settings.model_copy(update={"train": Path("tables/train.csv")})
    )
    assert built.others["train"]["prompt"].tolist() == ["velotrine is given for [Y] ."]
    assert len(built.queries) == 2 and "ague" in set(built.candidates["name"])
