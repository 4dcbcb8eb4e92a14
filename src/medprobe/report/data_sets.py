"""The ten data sets that are compared, template-based and template-free (Shaier et al., Tables 3 to
5), and where each is among the benchmarks."""

from typing import Final, NamedTuple


class DataSet(NamedTuple):
    """One of the paper's ten data sets: a subset of a benchmark."""

    name: str
    benchmark: str
    subset: str
    kind: str
    domain: str


DATA_SETS: Final = [
    DataSet("CTD", "biolama", "ctd", "template-based", "biomedical"),
    DataSet("Biomed-Wikidata", "biolama", "wikidata", "template-based", "biomedical"),
    DataSet("Google-RE (template)", "lama", "google-re-template", "template-based", "general"),
    DataSet("T-REx (template)", "lama", "t-rex-template", "template-based", "general"),
    DataSet("Google-RE (free)", "lama", "google-re-free", "template-free", "general"),
    DataSet("T-REx (free)", "lama", "t-rex-free", "template-free", "general"),
    DataSet("ConceptNet", "lama", "conceptnet", "template-free", "general"),
    DataSet("SQuAD", "lama", "squad", "template-free", "general"),
    DataSet("LIPID-Chem", "lipid", "chem", "template-free", "biomedical"),
    DataSet("LIPID-Gene", "lipid", "gene", "template-free", "biomedical"),
]
PARALLEL: Final = [("Google-RE", "google-re-template", "google-re-free"),
                   ("T-REx", "t-rex-template", "t-rex-free")]  # fmt: skip
