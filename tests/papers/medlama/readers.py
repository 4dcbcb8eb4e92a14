"""What reads MedLAMA's files, and a file for each reader to damage."""

from pathlib import Path
from typing import Final

import pandas as pd

from helpers.damage import Reader, file
from medprobe.papers.medlama import annotation, rewiring
from medprobe.papers.medlama.benchmarks import medlama_released


def _ratings(ending: str) -> Reader:
    """An expert's sheet of this format, and what reads it."""
    folder = f"sheets-{ending}"
    items = pd.DataFrame({"item": ["a-1", "a-2"], "asked": "prompts"})
    return f"{folder}/anna.{ending}", lambda data: annotation.read_ratings(data / folder, items)


READERS: Final[dict[str, Reader]] = {
    "MedLAMA": file(
        "released/may_treat_2.csv", lambda f: medlama_released.read_queries(f, "may_treat")
    ),
    "sentences": file("sentences/set-0.txt", rewiring.read_sentences),
    **{f"ratings in {ending}": _ratings(ending) for ending in ("csv", "xlsx")},
}


def write_files(data: Path) -> None:
    """Write the files that the sample world lacks."""
    (released := data / "released").mkdir(exist_ok=True)
    head = ",".join(medlama_released.COLUMNS)
    line = "C1,some oil,may_treat,\"['C2', 'C3']\",\"['dry eye', 'cold']\",dry eye || cold,C2 || C3"
    line += ",2,2,0.0,0.5"
    (released / "may_treat_2.csv").write_text(f"{head}\n{line}\n{line}\n")
    sheet = pd.DataFrame({"item": ["a-1", "a-2"], "text": "some text", "rating": ["yes", "no"]})
    for ending, write in (("csv", sheet.to_csv), ("xlsx", sheet.to_excel)):
        (data / f"sheets-{ending}").mkdir()
        write(data / f"sheets-{ending}/anna.{ending}", index=False)
