"""The language-model head, a third of a small model's work, run only where its output is wanted."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

# Others have modules of BERT's names, too, but pad their input (Longformer), or look at all that a
# layer read again at its end (MobileBERT).
BERT_LIKE: Final = {"bert", "roberta", "xlm-roberta", "camembert", "electra"}
LOGITS_AT_ONCE: Final = 2**26  # numbers in a head's output: 256 MiB of float32


@contextmanager
def narrowed(body: torch.nn.Module, positions: Sequence[int]) -> Iterator[None]:
    """Within the block the model's head sees only these positions of its body's output.

    `body` is the part of a model that its head stands on. Positions count through the batch, row
    after row, padding included; the logits have the shape (1, positions, vocabulary). This holds
    for every architecture whose head works on each token alone. Where the body is built as BERT's
    is, all of its last layer but attention works on these positions alone, too.
    """

    def chosen(states: torch.Tensor) -> torch.Tensor:
        return states.flatten(0, 1)[torch.tensor(positions, device=states.device)].unsqueeze(0)

    def attended(module: torch.nn.Module, states: Any) -> Any:
        return tuple(map(chosen, states))

    def narrow(module: torch.nn.Module, inputs: Any, output: Any) -> Any:
        output.last_hidden_state = chosen(output.last_hidden_state)
        return output

    last = _last_attention(body)
    hook = (
        body.register_forward_hook(narrow)
        if last is None
        else last.register_forward_pre_hook(attended)
    )
    try:
        yield
    finally:
        hook.remove()


def _last_attention(body: Any) -> Any:
    """What takes up the last attention's output and the states that it is added to, each [texts,
    tokens, hidden], and after which each token is alone; None where the body is not built so."""
    alike = body.config.model_type in BERT_LIKE
    return body.encoder.layer[-1].attention.output if alike else None


@contextmanager
def without_bias(network: Any) -> Iterator[None]:
    """Within the block the logits of a language-model head are the products alone."""
    head = network.get_output_embeddings()
    if head.bias is None:
        yield
        return
    bias = head.bias.detach().clone()
    with torch.no_grad():
        head.bias.zero_()
    try:
        yield
    finally:
        with torch.no_grad():
            head.bias.copy_(bias)


def of_targets(logits: torch.Tensor, targets: Sequence[int]) -> list[float]:
    """The log-probability of one target token for each row of logits, (targets, vocabulary)."""
    wanted = torch.tensor(targets, device=logits.device)
    chosen = logits.gather(1, wanted[:, None])[:, 0] - logits.logsumexp(-1)
    scores: list[float] = chosen.tolist()
    return scores


def bounded(batch: list[int], counts: Sequence[int], vocabulary: int) -> Iterator[list[int]]:
    """The batch in parts whose logits stay within LOGITS_AT_ONCE, or of one row.

    `counts` is the number of positions of each row.
    """
    part: list[int] = []
    total = 0
    for i in batch:
        if part and (total + counts[i]) * vocabulary > LOGITS_AT_ONCE:
            yield part
            part, total = [], 0
        part.append(i)
        total += counts[i]
    if part:
        yield part
