"""Training of the sample models: small, on the sample world's text, in about a minute."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

import torch

from medprobe.engine.training_state import StateFile
from medprobe.sample.architectures import build_untrained, load_trained, tokenizer
from medprobe.sample.losses import LOSSES
from medprobe.sample.sentences import CHATS, JOINED, batches, read, with_turns
from medprobe.sample.settings import TrainingRecipe

FASTER: Final = 10  # times the rate: pieces' vectors learn faster than the rest, as each is rare


def train(
    recipe: TrainingRecipe,
    texts: Path,
    state: Path,
    *,
    base: Path | None = None,
    seed: int,
    on_step: Callable[[int], Any] = lambda step: None,
) -> tuple[Any, Any]:
    """Train a sample model on `texts/corpus-<recipe.corpus>.txt`: `(model, tokenizer)`.

    It begins with the weights of the model in the folder `base`, or with drawn ones. `state` is the
    file from which a training that was stopped goes on, to the same weights;
    `on_step` is called with the step where it begins, then with each one. The same seed and number
    of threads give the same weights.
    """
    all_texts = [path for form in ("corpus", "cases") for path in texts.glob(f"{form}-*.txt")]
    pieces = tokenizer(recipe.kind, all_texts, recipe.vocabulary)
    corpus = texts / f"corpus-{recipe.corpus}.txt"
    sentences = read(corpus, texts / "names.txt", pieces)
    cases = []
    if recipe.kind == "masked":
        case_sentences = read(texts / f"cases-{recipe.corpus}.txt", texts / "names.txt", pieces)
        cases = [replace(sentence, case=True) for sentence in case_sentences]
    torch.manual_seed(seed)
    rng = random.Random(seed)
    if recipe.kind == "chat":
        sentences = with_turns(sentences, pieces, rng)
    model = load_trained(recipe.kind, base) if base else build_untrained(recipe, len(pieces))
    model.train()
    vectors = model.get_input_embeddings().weight
    others = [weight for weight in model.parameters() if weight is not vectors]
    groups: list[dict[str, Any]] = [
        {"params": others},
        {"params": [vectors], "lr": FASTER * recipe.learning_rate},
    ]
    optimiser = torch.optim.AdamW(
        groups,
        lr=recipe.learning_rate,
        weight_decay=0.01,
        betas=(0.9, 0.98),
        fused=True,
    )
    rates = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: rate(step, recipe.steps))
    parts = {"model": model, "optimiser": optimiser, "rates": rates}
    file = StateFile(state)
    first = _resume(file, parts, rng)
    on_step(first)
    together = CHATS if recipe.kind == "chat" else JOINED
    todo = islice(batches(sentences, recipe.batch, rng, cases, together), recipe.steps - first)
    for step, batch in enumerate(todo, start=first + 1):
        loss = LOSSES[recipe.kind](model, pieces, batch, rng)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        rates.step()
        file.write_if_due(partial(_state, step, parts, rng))
        on_step(step)
    return model.eval(), pieces


def rate(step: int, steps: int) -> float:
    """Share of the learning rate at a step: up over a tenth, level, down over the last 40 %."""
    return min(1.0, (step + 1) / (0.1 * steps), (steps - step) / (0.4 * steps))


def _state(step: int, parts: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """What the next step needs."""
    content = {name: part.state_dict() for name, part in parts.items()}
    return {"step": step, "python": rng.getstate(), **content}


def _resume(file: StateFile, parts: dict[str, Any], rng: random.Random) -> int:
    """Restore a stored state, if there is one, and return the number of its steps."""
    state = file.read()
    if state is None:
        return 0
    for name, part in parts.items():
        part.load_state_dict(state[name])
    rng.setstate(state["python"])
    return int(state["step"])
