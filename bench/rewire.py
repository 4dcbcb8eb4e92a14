"""Rewiring: steps a second against two passes padded to 48 tokens.

    python -m bench.rewire            # two minutes on two free cores

The model is BERT-base with random weights, the batch the paper's 192 pairs. Sentences are PubMed's
where MEDPROBE_RELEASED has them (sentences/), else invented ones of their length.
"""

import random
import tempfile
from pathlib import Path
from typing import Any

import torch

from bench import made as shared
from bench.encode import RELEASED, names_and_tokenizer, seconds
from medprobe.engine.load import Model, load, use_threads
from medprobe.engine.rewiring import RewireSettings, batch_order, info_nce, make_pairs, train

SETTINGS = RewireSettings(steps=2, checkpoint_every=1_000)
WORDS = 23  # of a PubMed sentence, in the mean


def sentences() -> tuple[str, list[str]]:
    """`(what they are, sentences)`, enough for the steps run."""
    count = SETTINGS.batch * SETTINGS.steps
    sets = sorted((RELEASED / "sentences").glob("*"))
    if sets:
        return "PubMed's", sets[0].read_text(encoding="utf-8").split("\n")[:count]
    words = " ".join(shared.names(count * WORDS // 2, 0)).split()
    draw = random.Random(0)
    lengths = [max(4, round(draw.gauss(WORDS, 8))) for _ in range(count)]
    return "invented", [" ".join(draw.choices(words, k=length)) + " " for length in lengths]


def two_padded_passes(model: Model, pairs: list[tuple[str, str]]) -> None:
    """The straightforward way: queries, then answers, each padded to 48 tokens; all layers kept."""
    adam = torch.optim.AdamW(model.model.parameters(), lr=SETTINGS.learning_rate)
    model.model.train()
    for chosen in batch_order(len(pairs), SETTINGS.batch, SETTINGS.steps, "bench"):
        sides = []
        for side in (0, 1):
            tokens: Any = model.tokenizer(
                [pairs[i][side] for i in chosen],
                padding="max_length",
                max_length=SETTINGS.max_length,
                truncation=True,
                return_tensors="pt",
            )
            states = model.model(**tokens, output_hidden_states=True).hidden_states
            sides.append(states[-1][:, 0])
        adam.zero_grad()
        info_nce(torch.cat(sides), SETTINGS.temperature).backward()
        adam.step()


def main() -> None:
    """Print the figures."""
    threads = use_threads()
    what, lines = sentences()
    _, _, tokenizer = names_and_tokenizer()
    pairs = make_pairs(lines, tokenizer.mask_token, SETTINGS, "bench")
    with tempfile.TemporaryDirectory() as folder:
        place = shared.encoder(Path(folder) / "bert", tokenizer)
        model, plain = load(place, "encoder", shared.CPU), shared.plain(place, "encoder")
        # the one checkpoint at the end is part of the work
        ours = seconds(
            lambda: train(model, pairs, SETTINGS, seed="bench", folder=Path(folder) / "steps")
        )
    theirs = seconds(lambda: two_padded_passes(plain, pairs))
    print(
        f"batches of {SETTINGS.batch} pairs, sentences {what}; BERT-base, random; {threads} threads"
    )
    print(f"one pass, by length   {SETTINGS.steps / ours:6.3f} steps/s")
    print(f"two passes, padded    {SETTINGS.steps / theirs:6.3f} steps/s")
    print(f"ratio                 {theirs / ours:6.2f}   (wanted: 1.8)")


if __name__ == "__main__":
    main()
