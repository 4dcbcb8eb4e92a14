"""Broken sources: files of the sample world, damaged before a benchmark is built from them.

Each case changes the files below `data/` as a program, a download or a hand would. `ODDITIES` are
odd and right: nothing is said of them.
"""

import gzip
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pandas as pd

from medprobe.sources import rrf

Row = dict[str, Any]
Change = Callable[[Row], Row]
Damage = Callable[[Path], None]  # of the folder `data/`
Cases = dict[str, Damage]  # by what is broken

MRCONSO: Final = "umls/MRCONSO.RRF"
MRREL: Final = "umls/MRREL.RRF"
COLUMNS: Final = {MRCONSO: rrf.MRCONSO, MRREL: rrf.MRREL, "umls/MRSTY.RRF": rrf.MRSTY}
FACTS: Final = "tables/facts.csv"
TEMPLATES: Final = "tables/templates.csv"
NOTES: Final = "notes/NOTEEVENTS.csv"
PAIRS: Final = "mednli/*.jsonl"
ABSTRACTS: Final = "pubmed/*.xml.gz"
TRIPLES: Final = "biolama/*/triples_processed/*/*.jsonl"
PROMPTS: Final = "biolama/*/prompts/manual.jsonl"
LAMA: Final = "lama/[GTCS]*/*.jsonl"


def rows(name: str, change: Callable[[Row, int], Row]) -> Damage:
    """Change each row of a table: RRF, JSON lines or CSV; its number counts from 0."""

    def damage(data: Path) -> None:
        for path in sorted(data.glob(name)):
            table = read(path)
            write(path, [change(row, number) for number, row in enumerate(table)])

    return damage


def table(name: str, change: Callable[[list[Row]], list[Row]]) -> Damage:
    """Change the list of all rows of a table."""

    def damage(data: Path) -> None:
        for path in sorted(data.glob(name)):
            write(path, change(read(path)))

    return damage


def text(name: str, change: Callable[[str], str]) -> Damage:
    """Change a file's text, zipped or not."""

    def damage(data: Path) -> None:
        for path in sorted(data.glob(name)):
            content = path.read_bytes()
            is_zipped = path.suffix == ".gz"
            changed = change((gzip.decompress(content) if is_zipped else content).decode())
            path.write_bytes(gzip.compress(changed.encode()) if is_zipped else changed.encode())

    return damage


def read(path: Path) -> list[Row]:
    """Read the rows of a table, by the name of its file."""
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    if path.suffix == ".csv":
        return pd.read_csv(path, dtype=str, keep_default_na=False).to_dict("records")
    columns = COLUMNS[f"umls/{path.name}"]
    lines = path.read_text("utf-8").splitlines()
    return [dict(zip(columns, line.split("|"), strict=False)) for line in lines]


def write(path: Path, table: list[Row]) -> None:
    """Write the rows of a table, by the name of its file."""
    if path.suffix == ".csv":
        pd.DataFrame(table).to_csv(path, index=False)
        return
    is_json = path.suffix == ".jsonl"
    lines = [json.dumps(row) if is_json else "|".join([*row.values(), ""]) for row in table]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def both(*damages: Damage) -> Damage:
    """Apply damages one after another."""

    def damage(data: Path) -> None:
        for each in damages:
            each(data)

    return damage


def put(**values: Any) -> Callable[[Row, int], Row]:
    """Replace fields; a value can be a function of the row."""
    return every(1, **values)


def every(step: int, where: Callable[[Row], bool] = lambda row: True, **values: Any) -> Any:
    """Replace fields of each row of so many that fits; a value can be a function of the row."""

    def change(row: Row, number: int) -> Row:
        if number % step or not where(row):
            return row
        changes = {key: value(row) if callable(value) else value for key, value in values.items()}
        return {**row, **changes}

    return change


def swap(first: str, second: str) -> Callable[[Row, int], Row]:
    """Exchange two fields of each row."""
    return lambda row, _: {**row, first: row[second], second: row[first]}


def half(lines: list[Row]) -> list[Row]:
    return lines[: len(lines) // 2]


def twice(lines: list[Row]) -> list[Row]:
    return lines * 2


def is_of(*relations: str) -> Callable[[Row], bool]:
    return lambda row: row.get("RELA", row.get("relation")) in relations


def named(change: Callable[[str], str]) -> Callable[[Row], str]:
    """The name of a concept, with é for e, as a program changes it."""
    return lambda row: change(row["STR"].replace("e", "é"))


def misread(name: str) -> str:
    return name.encode().decode("latin-1")


def copy(source: str, target: str) -> Damage:
    def damage(data: Path) -> None:
        shutil.copyfile(data / source, data / target)

    return damage


def list_size(data: Path) -> None:
    """Write the list of a UMLS release's files with the size of MRREL."""
    size = (data / MRREL).stat().st_size
    (data / "umls/MRFILES.RRF").write_text(f"MRREL.RRF|Relations|CUI1|16|7|{size}|\n")


def copy_relation(data: Path) -> None:
    """Copy the triples of one relation over those of another, ids and files' names aside."""
    for split in ("train", "dev", "test"):
        folder = data / "biolama/umls/triples_processed"
        lines = [
            row | {"uuid": row["uuid"].replace("UR1", "UR2"), "predicate_id": "UR2"}
            for row in read(folder / f"UR1/{split}.jsonl")
        ]
        write(folder / f"UR2/{split}.jsonl", lines)


def train_aliases(data: Path) -> None:
    """Add each test fact to those that train, under the subject's last alias and another id."""
    for test in data.glob("biolama/*/triples_processed/*/test.jsonl"):
        train = test.with_name("train.jsonl")
        named = [row for row in read(test) if row["sub_aliases"]]
        again = [
            row
            | {"uuid": f"{row['uuid']}-a", "sub_uri": f"{row['sub_uri']}9", "sub_aliases": []}
            | {"sub_label": row["sub_aliases"][-1]}
            for row in named
        ]
        write(train, [*read(train), *again])


def lists(**changes: Callable[[Row], Any]) -> Callable[[Row, int], Row]:
    return lambda row, _: row | {key: change(row) for key, change in changes.items()}


def exchange_slots(template: str) -> str:
    return template.replace("[X]", "[Z]").replace("[Y]", "[X]").replace("[Z]", "[Y]")


def exchange_templates(lines: list[Row]) -> list[Row]:
    first, second, *_ = lines
    first["template"], second["template"] = second["template"], first["template"]
    return lines


def shifted(column: str) -> Callable[[list[Row]], list[Row]]:
    def change(lines: list[Row]) -> list[Row]:
        values = [line[column] for line in lines]
        return [
            row | {column: value}
            for row, value in zip(lines, [*values[1:], values[0]], strict=True)
        ]

    return change


ENDS: Final = {"CUI1": "CUI2", "AUI1": "AUI2", "CUI2": "CUI1", "AUI2": "AUI1"}


def turned(relation: str) -> Damage:
    """Exchange the ends of a relation's facts."""
    exchange = {name: lambda row, other=other: row[other] for name, other in ENDS.items()}
    return rows(MRREL, every(1, is_of(relation), **exchange))


def both_ways(relation: str) -> Damage:
    """Say each fact of a relation again with its ends exchanged."""
    return table(
        MRREL,
        lambda lines: [
            *lines,
            *(
                row | {name: row[other] for name, other in ENDS.items()} | {"RUI": f"R8{number}"}
                for number, row in enumerate(filter(is_of(relation), lines))
            ),
        ],
    )


def filled_down(relation: str) -> Callable[[list[Row]], list[Row]]:
    """Give all facts of a relation the object of the first one."""

    def change(lines: list[Row]) -> list[Row]:
        first = next(row for row in lines if row["RELA"] == relation)
        ends = {"CUI1": first["CUI1"], "AUI1": first["AUI1"]}
        return [row | ends if row["RELA"] == relation else row for row in lines]

    return change


def with_wordings(*templates: str) -> Damage:
    """Write templates of `may_treat`, and the one of `may_prevent`, instead of facts' prompts."""

    def damage(data: Path) -> None:
        facts = pd.read_csv(data / FACTS, dtype=str).drop(columns="prompt")
        facts.to_csv(data / FACTS, index=False)
        listed = [("may_treat", template) for template in templates]
        listed += [("may_prevent", template) for template in PREVENTS]
        names = [f"w{number}" for number in range(len(listed))]
        frame = pd.DataFrame(listed, columns=["relation", "template"]).assign(wording=names)
        frame.to_csv(data / TEMPLATES, index=False)

    return damage


PREVENTS: Final = ("[X] may prevent [Y] .", "[Y] may be prevented by [X] .")
TREATS: Final = ("[X] may treat [Y] .", "[Y] may be treated by [X] .")
PUBLICATION: Final = "<PublicationTypeList><PublicationType>{}</PublicationType>"
RETRACTED: Final = PUBLICATION.format("Retracted Publication") + "</PublicationTypeList></Article>"
BOOK: Final = "<PubmedBookArticle><BookDocument><PMID>7</PMID></BookDocument></PubmedBookArticle>"


def first_text(lines: list[Row]) -> list[Row]:
    return [row | {"TEXT": lines[0]["TEXT"]} for row in lines]


def equal_vectors(content: str) -> str:
    head, *lines = content.splitlines()
    vector = lines[0].split(",", 1)[1]
    return "\n".join([head, *(f"{line.split(',', 1)[0]},{vector}" for line in lines), ""])


def without_vectors(step: int) -> Callable[[str], str]:
    """Take every so many vectors away."""
    return lambda content: "".join(
        line for n, line in enumerate(content.splitlines(True)) if not n or n % step
    )


def with_more(count: int, **values: Callable[[Row, int], str]) -> Callable[[list[Row]], list[Row]]:
    """Append copies of the first row with other values."""

    def change(lines: list[Row]) -> list[Row]:
        first = lines[0]
        added = [
            first | {key: value(first, n) for key, value in values.items()} for n in range(count)
        ]
        return [*lines, *added]

    return change


MEDLAMA: Final[Cases] = {
    "MRCONSO cut in half": table(MRCONSO, half),
    "MRREL cut in half": table(MRREL, half),
    "MRREL cut in half, with MRFILES.RRF": both(list_size, table(MRREL, half)),
    "MRREL appended to itself": table(MRREL, twice),
    "CUI1 and CUI2 of MRREL exchanged": both(
        rows(MRREL, swap("CUI1", "CUI2")), rows(MRREL, swap("AUI1", "AUI2"))
    ),
    "CUI1 and CUI2 of one relation exchanged": turned("gene_encodes_gene_product"),
    "CUI1 and CUI2 of may_treat exchanged": turned("may_treat"),
    "may_treat in both directions": both_ways("may_treat"),
    "one relation in capitals": rows(MRREL, every(1, is_of("may_treat"), RELA="MAY_TREAT")),
    "all relations withdrawn": rows(MRREL, put(SUPPRESS="O")),
    "half of the relations withdrawn": rows(MRREL, every(4, SUPPRESS="O")),
    "one answer for every subject of a relation": table(MRREL, filled_down("may_treat")),
    "names of another release": rows(MRCONSO, put(AUI=lambda row: f"B{row['AUI'][1:]}")),
    "names shifted by one row": table(MRCONSO, shifted("STR")),
    "`unknown` as half of the names": rows(MRCONSO, every(2, STR="unknown")),
    "`nan` as a tenth of the names": rows(MRCONSO, every(10, STR="nan")),
    "`?` for letters that are not ASCII": rows(
        MRCONSO, put(STR=named(lambda name: name.replace("é", "?")))
    ),
    "U+FFFD for letters that are not ASCII": rows(
        MRCONSO, put(STR=named(lambda name: name.replace("é", "\ufffd")))
    ),
    "UTF-8 read as Latin-1": rows(MRCONSO, put(STR=named(misread))),
    "names of another language alone": rows(MRCONSO, put(LAT="SPA")),
    "a code as half of the names": rows(MRCONSO, every(2, STR=lambda row: row["CODE"])),
    "fully specified names, `… (disorder)`": rows(
        MRCONSO, put(STR=lambda row: f"{row['STR']} (disorder)")
    ),
    "blanks that do not break in a tenth of the names": rows(
        MRCONSO, every(10, STR=lambda row: f"{row['STR']}\u00a0")
    ),
    "invisible characters in half of the names": rows(
        MRCONSO, every(2, STR=lambda row: f"{row['STR'][:2]}\u200b{row['STR'][2:]}")
    ),
    "entities of HTML in names": rows(MRCONSO, every(5, STR=lambda row: f"{row['STR']}&#39;s")),
    "soft hyphens in names": rows(
        MRCONSO, every(5, STR=lambda row: f"{row['STR'][:3]}\u00ad{row['STR'][3:]}")
    ),
    "the names of RxNorm's ids": rows(MRCONSO, put(CUI=lambda row: row["CUI"][1:])),
}
BIOLAMA: Final[Cases] = {
    "[X] and [Y] of the templates exchanged": rows(
        PROMPTS, put(template=lambda row: exchange_slots(row["template"]))
    ),
    "a relation's folder copied over another one": copy_relation,
    "subjects shifted by one row": table(TRIPLES, shifted("sub_label")),
    "ids of subjects shifted by one row": table(TRIPLES, shifted("sub_uri")),
    "test facts in train under a brand name": train_aliases,
    "the templates negated": rows(
        PROMPTS, put(template=lambda row: row["template"].replace("[Y]", "not [Y]"))
    ),
    "ids in place of labels": rows(TRIPLES, lists(
        obj_labels=lambda row: row["obj_uris"], obj_aliases=lambda row: []
    )),
    "objects `nan`": rows("biolama/ctd/triples_processed/*/*.jsonl", lists(
        obj_labels=lambda row: ["nan"] * len(row["obj_labels"])
    )),
    "one uri for all objects of a triple": rows(TRIPLES, lists(
        obj_uris=lambda row: [row["obj_uris"][0]] * len(row["obj_uris"])
    )),
    "the subject is an alias of each object": rows(TRIPLES, lists(
        obj_aliases=lambda row: [[row["sub_label"]] for _ in row["obj_labels"]]
    )),
    "test.jsonl copied over train.jsonl": copy(
        "biolama/ctd/triples_processed/CD1/test.jsonl",
        "biolama/ctd/triples_processed/CD1/train.jsonl",
    ),
    "two relations exchange their templates": table(
        "biolama/umls/prompts/manual.jsonl", exchange_templates
    ),
    "markup in labels": rows("biolama/ctd/triples_processed/*/*.jsonl", lists(
        obj_labels=lambda row: [f"<i>{name}</i>" for name in row["obj_labels"]]
    )),
}  # fmt: skip
LAMA_CASES: Final[Cases] = {
    "objects in lower case, sentences not": rows(
        LAMA, lists(obj_label=lambda row: row["obj_label"].lower())
    ),
    "each fact of T-REx twice, under another id": table(
        "lama/TREx/*.jsonl",
        lambda lines: [*lines, *(row | {"uuid": f"{row['uuid']}-2"} for row in lines)],
    ),
    "the subject is the object": rows(
        LAMA, lists(obj_label=lambda row: row.get("sub_label", row["obj_label"]))
    ),
    "two relations exchange their templates": table("lama/relations.jsonl", exchange_templates),
    "slots of the templates exchanged": rows(
        "lama/relations.jsonl", put(template=lambda row: exchange_slots(row["template"]))
    ),
}
DISKNE: Final[Cases] = {
    "premise and hypothesis exchanged": rows(PAIRS, swap("sentence1", "sentence2")),
    "ids of the annotation shifted by one row": table("diskne/annotation.csv", shifted("cui")),
    "vectors of two thirds of the concepts": text("cui2vec/*.csv", without_vectors(3)),
    "vectors that are all equal": text("cui2vec/*.csv", equal_vectors),
    "labels exchanged in one split of MedNLI": rows(
        "mednli/mli_train_v1.jsonl",
        put(
            gold_label=lambda row: {"entailment": "neutral", "neutral": "entailment"}.get(
                row["gold_label"], row["gold_label"]
            )
        ),
    ),
    "a split of MedNLI copied over another": copy(
        "mednli/mli_dev_v1.jsonl", "mednli/mli_test_v1.jsonl"
    ),
    "a column that is no dimension among the vectors": text(
        "cui2vec/*.csv",
        lambda content: "\n".join(
            f"{line},{n * 1000 if n else 'count'}" for n, line in enumerate(content.splitlines())
        ),
    ),
    "MRCONSO cut in half": table(MRCONSO, half),
}
CONTEXT: Final[Cases] = {
    "all notes marked as errors": rows(NOTES, put(ISERROR="1")),
    "all notes marked as errors, as pandas writes it": rows(NOTES, put(ISERROR="1.0")),
    "every concept a disease in MRSTY": rows("umls/MRSTY.RRF", put(STY="Disease or Syndrome")),
    "texts of notes cut at 40 characters": rows(NOTES, put(TEXT=lambda row: row["TEXT"][:40])),
    "each note has the text of the first": table(NOTES, first_text),
    "notes twice, under other ids": table(
        NOTES, lambda lines: [*lines, *(row | {"ROW_ID": f"9{row['ROW_ID']}"} for row in lines)]
    ),
    "escaped markup in notes": rows(
        NOTES, put(TEXT=lambda row: row["TEXT"].replace("\n", "&lt;br/&gt; "))
    ),
    "all relations withdrawn": rows(MRREL, put(SUPPRESS="O")),
    "CUI1 and CUI2 of MRREL exchanged": rows(MRREL, swap("CUI1", "CUI2")),
    "MRREL cut in half": table(MRREL, half),
    "MRREL cut in half, with MRFILES.RRF": both(list_size, table(MRREL, half)),
}
LIPID: Final[Cases] = {
    "day and month exchanged": text(
        ABSTRACTS,
        lambda content: re.sub(
            "<Month>(.*?)</Month><Day>(.*?)</Day>", r"<Month>\2</Month><Day>\1</Day>", content
        ),
    ),
    "common words among the chemicals": text(
        "entities/chemicals.txt", lambda content: content + "a\nis\nthe\nof\n"
    ),
    "every article again, under another PMID": text(
        ABSTRACTS,
        lambda content: content.replace(
            "</PubmedArticleSet>",
            re.sub(r'(<PMID Version="1">)', r"\g<1>7", "".join(
                re.findall("<PubmedArticle>.*?</PubmedArticle>", content, re.DOTALL)
            )) + "</PubmedArticleSet>",
        ),
    ),
    "all articles retracted": text(
        ABSTRACTS, lambda content: content.replace("</Article>", RETRACTED)
    ),
    "all dates in the year 2099": text(
        ABSTRACTS, lambda content: re.sub("<Year>20..</Year>", "<Year>2099</Year>", content)
    ),
    "escaped markup in abstracts": text(
        ABSTRACTS,
        lambda content: re.sub(
            r" (\w+)\.</AbstractText>", r" &amp;lt;i&amp;gt;\1&amp;lt;/i&amp;gt;.</AbstractText>",
            content,
        ),
    ),
    "books in place of articles": text(
        ABSTRACTS,
        lambda content: re.sub(
            "<PubmedArticle>.*</PubmedArticle>", BOOK, content, flags=re.DOTALL
        ),
    ),
    "a second column in a list of chemicals": text(
        "entities/chemicals.txt", lambda content: content.replace("\n", "\tchemical\n")
    ),
    "a list of chemicals with CR alone": text(
        "entities/chemicals.txt", lambda content: content.replace("\n", "\r")
    ),
}  # fmt: skip
TABLE: Final[Cases] = {
    "one relation in another case": rows(
        FACTS, every(2, relation=lambda row: row["relation"].upper())
    ),
    '"#N/A" and "#REF!" as objects': rows(FACTS, every(3, object="#REF!")),
    '"nan" and "None" as objects': rows(FACTS, every(3, object="nan")),
    "a spreadsheet's dates as objects": rows(FACTS, every(4, object="2-Sep")),
    "all objects equal": rows(FACTS, put(object=lambda row: "gout")),
    "an alias of an object is the name of another one": table(
        FACTS,
        lambda lines: [
            row | {"aliases": lines[(n + 1) % len(lines)]["object"]} for n, row in enumerate(lines)
        ],
    ),
    "ids in scientific notation": rows(
        FACTS, put(object_id=lambda row: f"{len(row['object']) % 9 + 1}.23E+12")
    ),
    "a full stop after half of the objects": table(
        FACTS, lambda lines: [*lines, *(row | {
            "subject": f"new {row['subject']}", "prompt": f"new {row['prompt']}",
            "object": f"{row['object']}.",
        } for row in lines)]
    ),
    "one id for all objects": rows(FACTS, put(object_id="1")),
    "one id for all subjects": rows(FACTS, put(subject_id="1")),
    "the subject is its own answer": rows(FACTS, put(object=lambda row: row["subject"])),
    "two objects in one cell": rows(FACTS, put(object=lambda row: f"{row['object']}; gout")),
    "two spellings in case of one object": table(
        FACTS, lambda lines: [*lines, *(row | {
            "subject": f"new {row['subject']}", "prompt": f"new {row['prompt']}",
            "object": row["object"].upper(),
        } for row in lines)]
    ),
    "UTF-8 read as Latin-1": rows(
        FACTS, put(object=lambda row: misread(row["object"].replace("e", "é")))
    ),
    "a misspelt column of aliases": rows(FACTS, put(alias="gout")),
    "prompts negated": rows(
        FACTS, put(prompt=lambda row: row["prompt"].replace(" may ", " may not "))
    ),
    "a relation copied under another name": table(
        FACTS, lambda lines: [*lines, *(row | {"relation": "copy"} for row in lines)]
    ),
    "objects cut at five characters": rows(FACTS, put(object=lambda row: row["object"][:5])),
}  # fmt: skip
WORDINGS: Final[Cases] = {
    "a wording of another relation": with_wordings(*TREATS, PREVENTS[0]),
    "a wording that says the opposite": with_wordings(*TREATS, "[X] does not treat [Y] ."),
    "a wording with slots exchanged": with_wordings(*TREATS, "[Y] may treat [X] ."),
    "two wordings that differ in a blank": with_wordings(*TREATS, "[X]  may treat [Y] ."),
    "two wordings that differ in case": with_wordings(*TREATS, "[X] MAY treat [Y] ."),
    "an alias of the subject is the answer": both(
        with_wordings(*TREATS), rows(FACTS, put(subject_aliases=lambda row: row["object"]))
    ),
}
SOURCES: Final[dict[str, Cases]] = {
    "medlama": MEDLAMA,
    "biolama": BIOLAMA,
    "lama": LAMA_CASES,
    "table": TABLE,
    "wordings": WORDINGS,
    "diskne": DISKNE,
    "context": CONTEXT,
    "lipid": LIPID,
}
ODD_NAMES: Final = ("What is it?", "1926", "Cell (biology)", "<40%", "AT&T", "E10", "Müller's")
ODDITIES: Final[dict[str, Cases]] = {
    "medlama": {
        "letters with accents in all names": rows(MRCONSO, put(STR=named(str))),
        "brackets, numbers and signs in a few names": rows(
            MRCONSO, every(40, STR=lambda row: f"{row['STR']} (2,4-D) [3H]+")
        ),
        "some relations withdrawn": rows(MRREL, every(50, SUPPRESS="O")),
    },
    "biolama": {
        "an empty dev split": text(
            "biolama/ctd/triples_processed/CD1/dev.jsonl", lambda content: ""
        ),
        "a byte order mark and CRLF": text(
            TRIPLES, lambda content: "\ufeff" + content.replace("\n", "\r\n")
        ),
    },
    "lama": {
        "years as objects": rows("lama/Squad/*.jsonl", every(7, obj_label="1926")),
    },
    "diskne": {
        "vectors of nine tenths of the concepts": text("cui2vec/*.csv", without_vectors(10)),
        "pairs without a decision, label `-`": table(
            PAIRS,
            with_more(
                1, pairID=lambda row, n: f"new{n}-{row['pairID']}", gold_label=lambda *_: "-"
            ),
        ),
    },
    "context": {
        "a few notes marked as errors": rows(NOTES, every(9, ISERROR="1")),
        "some relations withdrawn": rows(MRREL, every(50, SUPPRESS="O")),
    },
    "lipid": {
        "a retracted article, and a book": text(
            ABSTRACTS,
            lambda content: content.replace("</Article>", RETRACTED, 1).replace(
                "</PubmedArticleSet>", f"{BOOK}</PubmedArticleSet>"
            ),
        ),
        "a list of chemicals with CRLF": text(
            "entities/chemicals.txt", lambda content: content.replace("\n", "\r\n")
        ),
    },
    "table": {
        "a relation much larger than another one": table(
            FACTS,
            with_more(
                400,
                subject=lambda row, n: f"drug {n}",
                object=lambda row, n: f"illness {n % 40}",
                prompt=lambda row, n: f"drug {n} may treat [Y] .",
            ),
        ),
        "a relation that is one-to-one": table(
            FACTS,
            with_more(
                30,
                relation=lambda *_: "is_encoded_by",
                subject=lambda row, n: f"protein {n}",
                object=lambda row, n: f"gene {n}",
                prompt=lambda row, n: f"protein {n} is encoded by [Y] .",
            ),
        ),
        "question marks, years, brackets and signs in names": table(
            FACTS,
            with_more(
                len(ODD_NAMES),
                subject=lambda row, n: f"drug {n}",
                object=lambda row, n: ODD_NAMES[n],
                prompt=lambda row, n: f"drug {n} may treat [Y] .",
            ),
        ),
        "an unknown column": rows(FACTS, put(comment="seen by two people")),
        "a relation with three subjects of one answer": table(
            FACTS,
            with_more(
                3,
                relation=lambda *_: "rare",
                subject=lambda row, n: f"cause {n}",
                object=lambda *_: "gout",
                prompt=lambda row, n: f"cause {n} leads to [Y] .",
            ),
        ),
    },
    "wordings": {"three wordings": with_wordings(*TREATS, "[X] is a treatment for [Y] .")},
}
