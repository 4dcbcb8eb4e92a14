"""What reads MedLAMA's files, and a file for each reader to damage."""

from pathlib import Path
from typing import Final

import pandas as pd

from helpers.damage import Reader, file
from medprobe.papers.medlama import annotation, sentences
from medprobe.papers.medlama.benchmarks import medlama_released


def _read_ratings(sheet: Path) -> pd.DataFrame:
    items = pd.DataFrame({"item": ["a-1", "a-2"], "asked": "prompts"})
    return annotation.read_ratings(sheet.parent, items)


READERS: Final[dict[str, Reader]] = {
    "MedLAMA": file(
        "released/may_treat_2.csv", lambda f: medlama_released.read_queries(f, "may_treat")
    ),
    "sentences": file("sentences/set-0.txt", sentences.read_sentences),
    "ratings": file("sheets/anna.csv", _read_ratings),
}


def write_files(data: Path) -> None:
    """Write the files that the sample world lacks."""
    (released := data / "released").mkdir(exist_ok=True)
    head = ",".join(medlama_released.COLUMNS)
    line = "C1,some oil,may_treat,\"['C2', 'C3']\",\"['dry eye', 'cold']\",dry eye || cold,C2 || C3"
    line += ",2,2,0.0,0.5"
    (released / "may_treat_2.csv").write_text(f"{head}\n{line}\n{line}\n")
    sheet = pd.DataFrame({"item": ["a-1", "a-2"], "text": "some text", "rating": ["yes", "no"]})
    (data / "sheets").mkdir()
    sheet.to_csv(data / "sheets/anna.csv", index=False)
