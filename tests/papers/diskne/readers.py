"""What reads DisKnE's files, and a file for each reader to damage."""

from pathlib import Path
from typing import Final

from helpers.damage import Reader, file
from medprobe.papers.diskne import annotation, concepts, mednli

READERS: Final[dict[str, Reader]] = {
    "hierarchy": ("umls/MRREL.RRF", lambda d: concepts.Hierarchy.read(d / "umls")),
    "cui2vec": (
        "cui2vec/cui2vec_pretrained.csv",
        lambda d: concepts.read(d / "cui2vec/cui2vec_pretrained.csv", d.parent / "cache"),
    ),
    "MedNLI": ("mednli/mli_dev_v1.jsonl", lambda d: mednli.read(d / "mednli", d / "mediqa")),
    "MEDIQA": (
        "mediqa/mednli_bionlp19_shared_task_ground_truth.csv",
        lambda d: mednli.read(d / "mednli", d / "mediqa"),
    ),
    "the annotation": file("diskne/annotation.csv", annotation.read_sheet),
    "the released annotation": file(
        "released/DisknE_symptoms_annotation.csv", annotation.read_released
    ),
}


def write_files(data: Path) -> None:
    """Write the files that the sample world lacks."""
    (released := data / "released").mkdir(exist_ok=True)
    head = "pair_id,CUI,label,original_cui,start_index,end_index,category"
    line = "p1,C0000001,entailment,C0000001,0,4,symptoms_diseases"
    (released / "DisknE_symptoms_annotation.csv").write_text(f"{head}\n{line}\n{line}\n")
