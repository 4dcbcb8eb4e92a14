"""MedLAMA's relations and their prompts, `[X]` the subject, `[Y]` the slot."""

from typing import Final

# Prompts as released, slips of the pen included. The last relation is in the released prompts but
# not in the benchmark.
HUMAN_PROMPTS: Final = {
    "disease_may_have_associated_disease": (
        "The disease [X] might have the associated disease [Y] ."
    ),
    "gene_product_plays_role_in_biological_process": (
        "The gene product [X] plays role in biological process [Y] ."
    ),
    "gene_product_encoded_by_gene": "The gene product [X] is encoded by gene [Y] .",
    "gene_product_has_associated_anatomy": "The gene product [X] has the associated anatomy [Y] .",
    "gene_associated_with_disease": "The gene [X] is associatied with disease [Y] .",
    "disease_has_abnormal_cell": "[X] has the abnormal cell [Y] .",
    "occurs_after": "[X] occurs after [Y] .",
    "gene_product_has_biochemical_function": "[X] has biochemical function [Y] .",
    "disease_may_have_molecular_abnormality": (
        "The disease [X] may have molecular abnormality [Y] ."
    ),
    "disease_has_associated_anatomic_site": (
        "The disease [X] can stem from the associated anatomic_site [Y] ."
    ),
    "associated_morphology_of": "[X] is associated morphology of [Y] .",
    "disease_has_normal_tissue_origin": "The disease [X] stems from the normal tissue [Y] .",
    "gene_encodes_gene_product": "The gene [X] encodes gene product [Y] .",
    "has_physiologic_effect": "[X] has physiologic effect of [Y] .",
    "may_treat": "[X] might treat [Y] .",
    "disease_mapped_to_gene": "The disease [X] is mapped to gene [Y] .",
    "may_prevent": "[X] may be able to prevent [Y] .",
    "disease_may_have_finding": "[X] may have [Y] .",
    "disease_has_normal_cell_origin": "The disease [X] stems from the normal cell [Y] .",
    "gene_product_has_chemical_classification": "The gene product [X] is a type of [Y] .",
}
RELATIONS: Final = tuple(HUMAN_PROMPTS)[:19]  # in the order of the paper's Table 2

SUBSTANCES: Final = ("A1.4", "A1.3.3")  # and clinical drugs
GENES: Final = ("A1.2.3.5",)
ANATOMY: Final = ("A1.2", "A2.1.4.1", "A2.1.5.1", "A2.1.5.2")
DISEASES: Final = ("B2.2.1.2", "B2.3", "A1.2.2")  # and injuries and anomalies
FINDINGS: Final = ("A2.2",)
PROCESSES: Final = ("B2",)  # of the body, sound or ill

# What the subjects and the answers of a relation are, as numbers in the tree of the UMLS's semantic
# types (STN of MRSTY.RRF): these types and those below them. Two ends of one kind, as in
# associated_morphology_of, have no entry. The answers of gene_product_has_biochemical_function are
# proteins as often as functions.
ENDS: Final = {
    "gene_product_plays_role_in_biological_process": (SUBSTANCES, PROCESSES),
    "gene_product_encoded_by_gene": (SUBSTANCES, GENES),
    "gene_product_has_associated_anatomy": (SUBSTANCES, ANATOMY),
    "gene_associated_with_disease": (GENES, DISEASES),
    "disease_has_abnormal_cell": (DISEASES, ANATOMY),
    "disease_may_have_molecular_abnormality": (("B2.2.1.2.1",), ("B2.2.1.2.2", "B2.2.1.1")),
    "disease_has_associated_anatomic_site": (DISEASES, ANATOMY),
    "disease_has_normal_tissue_origin": (DISEASES, ANATOMY),
    "gene_encodes_gene_product": (GENES, SUBSTANCES),
    "has_physiologic_effect": (SUBSTANCES, (*PROCESSES, *FINDINGS)),
    "may_treat": (SUBSTANCES, (*PROCESSES, *FINDINGS, "A1.2.2")),
    "disease_mapped_to_gene": (DISEASES, GENES),
    "may_prevent": (SUBSTANCES, (*PROCESSES, *FINDINGS, "A1.2.2")),
    "disease_may_have_finding": (DISEASES, FINDINGS),
    "disease_has_normal_cell_origin": (DISEASES, ANATOMY),
}


def default_prompt(relation: str) -> str:
    """Return the prompt made of the relation's own name.

    (One released default prompt, that of associated_morphology_of, has a stray second blank before
    its slot; this one has not.)

    >>> default_prompt("may_treat")
    '[X] may treat [Y] .'
    """
    return f"[X] {relation.replace('_', ' ')} [Y] ."
