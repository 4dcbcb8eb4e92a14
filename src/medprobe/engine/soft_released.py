"""Soft prompts as in BioLAMA's released code: the recipe of its published numbers.

Source: Sung et al., EMNLP 2021, `run_optiprompt.py` with `--init_manual_template`.

A vector stands for every token of the manual template, where it stood. Twenty rows are added to the
vocabulary, as input and as output; what the template leaves over is in the softmax only. In
training nothing is hidden: padding is read, and where its id is not 0, as in RoBERTa, it is masked
and predicted as well.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, Final

import torch

from medprobe.core.errors import BadInput
from medprobe.core.tables import SLOT
from medprobe.engine.batching import pad_rows
from medprobe.engine.load import Model
from medprobe.engine.slots import Slot, no_tokens_error
from medprobe.engine.soft import (
    SUBJECT,
    Example,
    SoftPrompt,
    Spread,
    install_vectors,
    loss_at,
    soft_ids,
    token_embeddings,
)
from medprobe.engine.training_state import StateFile

ROWS: Final = 20  # added to the vocabulary
DEVIATION: Final = 0.02  # of the rows that no token of the template starts


class Released:
    """A recipe like `soft.Spread`, as released.

    Vectors start from the template's own tokens. AdamW has no bias correction. All epochs have one
    order. With a warm-up the first step moves nothing.
    """

    def __init__(self, model: Model) -> None:
        self.model = model

    def slots(self, prompts: Sequence[SoftPrompt], where: Sequence[str]) -> list[Slot]:
        """The template's words as vectors; the subject's tokens are those of its text alone.

        Raises BadInput for a template of more than twenty tokens.
        """
        begin, end = self._ids("", add_special_tokens=True)
        slots = []
        for prompt, name in zip(prompts, where, strict=True):
            words = _words(prompt.template)
            count = len(self._template_ids(prompt.template))
            if count > ROWS:
                problem = f"the template has {count} tokens, as released there are {ROWS} vectors"
                raise BadInput(name, problem, "shorten it, or choose recipe: spread")
            vectors = iter(soft_ids(self.model, count))
            ids: dict[str, list[int]] = {SUBJECT: self._ids(prompt.subject), SLOT: []}
            parts = [
                ids[word] if word in ids else [next(vectors) for _ in self._ids(f" {word}")]
                for word in words
            ]
            index = words.index(SLOT)
            before, after = chain.from_iterable(parts[:index]), chain.from_iterable(parts[index:])
            slots.append(Slot((begin, *before), (*after, end), ""))
        return slots

    def answer_ids(self, names: Sequence[str], slot: Slot) -> list[list[int]]:
        """Those of the text alone, without a blank before it."""
        ids = [self._ids(name) for name in names]
        for name, name_ids in zip(names, ids, strict=True):
            if not name_ids:
                raise no_tokens_error(name)
        return ids

    def start(self, template: str) -> torch.Tensor:
        """All twenty rows: copies of the template's tokens, then normal numbers."""
        vectors = DEVIATION * torch.randn(ROWS, self.model.config.hidden_size)
        copies = token_embeddings(self.model, self._template_ids(template))
        vectors[: len(copies)] = copies.cpu()
        return vectors.to(self.model.device)

    @contextmanager
    def install_vectors(self, vectors: torch.Tensor) -> Iterator[None]:
        """As embeddings, and as rows of the head, whose bias is 0 for them."""

        def widen(head: torch.nn.Module, inputs: Any, logits: torch.Tensor) -> torch.Tensor:
            return torch.cat([logits, inputs[0] @ vectors.to(inputs[0].dtype).T], dim=-1)

        hook = self.model.model.get_output_embeddings().register_forward_hook(widen)
        try:
            with install_vectors(self.model, vectors):
                yield
        finally:
            hook.remove()

    def order(self, examples: int, previous: list[int]) -> list[int]:
        """That of the epoch before; in the first epoch a new one."""
        order: list[int] = previous or torch.randperm(examples).tolist()
        return order

    def optimizer(self, vectors: torch.Tensor, rate: float) -> torch.optim.Optimizer:
        """AdamW as transformers had it, with `correct_bias=False` and no weight decay."""
        return Uncorrected([vectors], rate)

    def schedule(self, warmup: int, steps: int) -> Callable[[int], float]:
        """From 0 up to 1 behind the warm-up, if there is one, then down to 0."""
        return lambda step: (
            step / warmup if step < warmup else (steps - step) / max(1, steps - warmup)
        )

    def losses(self, examples: Sequence[Example]) -> torch.Tensor:
        """Padding is read, and by a tokenizer whose padding is not 0 also masked and predicted."""
        tokenizer = self.model.tokenizer
        pad = tokenizer.pad_token_id
        longest = max(len(row) for row, _, _ in examples)
        rows, positions, tokens = [], [], []
        for i, (row, masks, targets) in enumerate(examples):
            padding = range(len(row), longest) if pad else range(0)
            rows.append(row + [tokenizer.mask_token_id] * len(padding))
            positions += [i * longest + p for p in (*masks, *padding)]
            tokens += [*targets, *[pad] * len(padding)]
        ids, attention = pad_rows(rows, pad, self.model.device)
        return loss_at(self.model, ids, torch.ones_like(attention), positions, tokens)

    def _template_ids(self, template: str) -> list[int]:
        """The tokens that vectors stand for."""
        words = [word for word in _words(template) if word not in (SUBJECT, SLOT)]
        return [i for word in words for i in self._ids(f" {word}")]

    def _ids(self, text: str, add_special_tokens: bool = False) -> list[int]:
        encoded = self.model.tokenizer(text, add_special_tokens=add_special_tokens, verbose=False)
        ids: list[int] = encoded["input_ids"]
        return ids


def _words(template: str) -> list[str]:
    """A template's words, [X] and [Y] among them.

    >>> _words("[X]'s sign is [Y].")
    ['[X]', "'s", 'sign', 'is', '[Y]', '.']
    """
    return template.replace(SUBJECT, f" {SUBJECT} ").replace(SLOT, f" {SLOT} ").split()


class Uncorrected(torch.optim.Optimizer):
    """Adam (Kingma and Ba, 2015) without the correction of its moments' bias.

    Early steps are some 3 times as large. `torch.optim` has no such choice.
    """

    def __init__(self, parameters: list[torch.Tensor], rate: float) -> None:
        super().__init__(parameters, {"lr": rate, "betas": (0.9, 0.999), "eps": 1e-6})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One step down the gradients."""
        for group in self.param_groups:
            first, second = group["betas"]
            for value in group["params"]:
                state = self.state[value]
                if not state:
                    state.update(mean=torch.zeros_like(value), square=torch.zeros_like(value))
                state["mean"].lerp_(value.grad, 1 - first)
                state["square"].mul_(second).addcmul_(value.grad, value.grad, value=1 - second)
                root = state["square"].sqrt().add_(group["eps"])
                value.addcdiv_(state["mean"], root, value=-group["lr"])


Quality = tuple[float, float]  # of vectors, higher is better: an accuracy, a negative loss
_PROGRESS: Final = ("epochs", "order", "position", "best_vectors", "best_quality")


class SoftTraining:
    """Vectors in training; everything that their next step needs.

    Args:
        recipe: How vectors are trained.
        vectors: They are trained in place, [vectors, hidden].
        examples: What they learn from.
        batch: Examples per step.
        scheduler: Of the rate of the vectors' optimizer.
        file: Of a training with the same arguments, which continues from it.
    """

    def __init__(
        self,
        recipe: Spread | Released,
        vectors: torch.Tensor,
        examples: Sequence[Example],
        batch: int,
        scheduler: torch.optim.lr_scheduler.LambdaLR,
        *,
        file: StateFile,
    ) -> None:
        self.recipe, self.model, self.vectors = recipe, recipe.model.model, vectors
        self.examples, self.batch = examples, batch
        self.optimizer, self.scheduler, self.file = scheduler.optimizer, scheduler, file
        self.epochs = 0  # that are finished
        self.order: list[int] = []  # of the examples in the current epoch, or the last
        self.position = 0  # in this order; 0 between epochs
        self.best_vectors = vectors.detach().clone()
        self.best_quality: Quality | None = None  # None: not yet measured
        if state := file.read():
            self._restore(state)

    def epoch(self) -> None:
        """Train on every example once, or on those that a stopped epoch left."""
        if not self.position:
            self.order = self.recipe.order(len(self.examples), self.order)
        self.model.train()
        while self.position < len(self.order):
            batch = self.order[self.position : self.position + self.batch]
            self.optimizer.zero_grad()
            self.recipe.losses([self.examples[i] for i in batch]).backward()
            self.optimizer.step()
            self.scheduler.step()
            self.position += self.batch
            self.file.write_if_due(self._state)
        self.model.eval()

    def end_epoch(self) -> None:
        """Count the epoch, once its vectors are measured."""
        self.epochs, self.position = self.epochs + 1, 0

    def keep_best(self, quality: Quality, *, always: bool) -> None:
        """Keep the vectors if they are better than the best so far, or `always`."""
        if always or self.best_quality is None or quality > self.best_quality:
            self.best_vectors, self.best_quality = self.vectors.detach().clone(), quality

    def _state(self) -> dict[str, Any]:
        return {
            "vectors": self.vectors.detach(),
            "optimizer": self.optimizer.state_dict(),
            "scheduler": self.scheduler.state_dict(),
            **{name: getattr(self, name) for name in _PROGRESS},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        with torch.no_grad():
            self.vectors.copy_(state["vectors"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])
        for name in _PROGRESS:
            setattr(self, name, state[name])
        self.best_vectors = self.best_vectors.to(self.vectors.device)
