"""A small DisKnE world in the real file formats: six diseases, two of them related."""

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd

from medprobe.core.params import EngineParams, ScoreParams
from medprobe.core.tables import BenchmarkTables
from medprobe.metrics import Scoring
from medprobe.papers.diskne.annotation import KEEP, SHEET
from medprobe.papers.diskne.methods.classifier import Classifier
from medprobe.papers.diskne.metrics.f1 import SCORER

CUIS = {  # name: (CUI, other names)
    "asthma": ("C0000001", ["bronchial asthma", "AST"]),
    "gout": ("C0000002", ["podagra"]),
    "acute gout": ("C0000003", []),  # below gout
    "influenza": ("C0000004", ["flu"]),
    "measles": ("C0000005", ["morbilli"]),
    "anemia": ("C0000006", []),
}
PAIRS = [  # id, premise, hypothesis, label, disease and category where it is a positive
    ("p1", "He wheezes at night.", "The patient has asthma.", "asthma", "symptoms"),
    ("p2", "She was given an inhaler.", "The patient has asthma.", "asthma", "treatments"),
    ("p3", "His breath is short.", "asthma", "asthma", "symptoms"),
    ("p4", "The toe is red.", "The patient has gout.", "gout", "symptoms"),
    ("p5", "Uric acid is high.", "The patient has acute gout.", "acute gout", "tests"),
    ("p6", "Fever in winter.", "The patient has influenza.", "influenza", "symptoms"),
    ("p7", "History of morbilli.", "The patient has measles.", "measles", "terminological"),
    ("p8", "Pale skin.", "The patient has an anemia.", "anemia", "symptoms"),
    ("p9", "Known podagra, now pale.", "The patient has an anemia.", "anemia", "tests"),
]


def other_pair(number: int) -> str:
    """A line of MedNLI or MEDIQA-NLI that is about no disease: their files are never empty."""
    texts = {"sentence1": "The room is quiet.", "sentence2": "The patient is well."}
    return json.dumps({"pairID": f"other{number}", "gold_label": "neutral", **texts})


OTHER_RELATION = "C9999998||CUI|RO|C9999999||CUI|other|R9||SNOMEDCT_US|SNOMEDCT_US|||N||"


def write(data: Path) -> None:
    """Write all of DisKnE's sources below `data`."""
    rows = [
        {"pairID": pair, "gold_label": "entailment", "sentence1": premise, "sentence2": hypothesis}
        for pair, premise, hypothesis, *_ in PAIRS
    ]
    rows.append({**rows[0], "pairID": "n1", "gold_label": "neutral"})
    for name, part in (("train", rows[:6]), ("dev", rows[6:7]), ("test", rows[7:])):
        lines(data / f"mednli/mli_{name}_v1.jsonl", [json.dumps(row) for row in part])
    lines(data / "mediqa/mednli_bionlp19_shared_task.jsonl", [other_pair(0)])
    write_csv(data / "mediqa/mednli_bionlp19_shared_task_ground_truth.csv", [["pair_id", "label"]])
    write_umls(data / "umls")
    write_vectors(data / "cui2vec/cui2vec_pretrained.csv")
    write_sheet(data / "diskne/annotation.csv")


def write_umls(folder: Path) -> None:
    names = [
        (cui, name, place)
        for name, (cui, others) in CUIS.items()
        for place, name in enumerate([name, *others])
    ]
    lines(
        folder / "MRCONSO.RRF",
        [
            f"{cui}|ENG|{'S' if place else 'P'}|L|PF|S|Y|A{n}||||SNOMEDCT_US|PT|1|{name}|9|N||"
            for n, (cui, name, place) in enumerate(names)
        ],
    )
    lines(folder / "MRSTY.RRF", [f"{cui}|T047|B|Disease|AT||" for cui, _ in CUIS.values()])
    lines(
        folder / "MRREL.RRF",
        ["C0000003||CUI|PAR|C0000002||CUI|inverse_isa|R1||SNOMEDCT_US|SNOMEDCT_US|||N||"],
    )


def write_vectors(path: Path) -> None:
    rows = [[cui, 1.0, number / 10] for number, (cui, _) in enumerate(CUIS.values())]
    write_csv(path, [["", "V1", "V2"], *rows])


def write_sheet(path: Path) -> None:
    header = [*SHEET, KEEP]
    rows = []
    for pair, premise, hypothesis, disease, category in PAIRS:
        start = hypothesis.index(disease)
        span = [CUIS[disease][0], start, start + len(disease)]
        rows.append([pair, premise, hypothesis, disease, *span, category, "yes"])
    write_csv(path, [header, *rows])


def write_csv(path: Path, rows: list[list[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        csv.writer(stream, lineterminator="\n").writerows(rows)


def lines(path: Path, texts: list[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{text}\n" for text in texts))


def report(tables: BenchmarkTables) -> dict[str, list[str]]:
    """The diseases that scoring reports, by category, for predictions that need no model."""
    return {
        category: sorted(set(table) - {"macro", "weighted"})
        for category, table in score(tables).items()
        if "/" not in category
    }


def score(tables: BenchmarkTables) -> dict[str, Any]:
    """The scores of predictions that need no model."""
    settings = Classifier.Settings(variants=("always-true",))
    method = Classifier(Path("no-model"), settings, EngineParams(device="cpu"), 0)
    parts = [method.predict(task, "always-true/") for task in method.tasks(tables, 1)]
    if not parts:
        return {}
    scoring = Scoring(ScoreParams(bootstrap=10), seed=0)
    return SCORER.score(pd.concat(parts), tables, scoring)["always-true"]
