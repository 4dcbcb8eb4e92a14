"""The language-model head, a third of a small model's work, run only where its output is needed."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import torch

# Others have modules of BERT's names, too, but pad their input (Longformer), or look at all that a
# layer read again at its end (MobileBERT).
BERT_LIKE: Final = {"bert", "roberta", "xlm-roberta", "camembert", "electra"}
LOGITS_AT_ONCE: Final = 2**26  # numbers in a head's output: 256 MiB of float32


@contextmanager
def narrow_head(body: torch.nn.Module, positions: Sequence[int]) -> Iterator[None]:
    """Let the model's head see only some positions of its body's output within the block.

    This works for every architecture whose head treats each token alone. In BERT-like bodies the
    last layer, except for its attention, works on these positions alone, too.

    Args:
        body: The part of the model that its head works on.
        positions: Count through the batch, row after row, padding included. The logits have the
            shape (1, positions, vocabulary).
    """

    def select(states: torch.Tensor) -> torch.Tensor:
        return states.flatten(0, 1)[torch.tensor(positions, device=states.device)].unsqueeze(0)

    def select_inputs(module: torch.nn.Module, states: Any) -> Any:
        return tuple(map(select, states))

    def select_output(module: torch.nn.Module, inputs: Any, output: Any) -> Any:
        output.last_hidden_state = select(output.last_hidden_state)
        return output

    attention_output = _last_attention(body)
    hook = (
        body.register_forward_hook(select_output)
        if attention_output is None
        else attention_output.register_forward_pre_hook(select_inputs)
    )
    try:
        yield
    finally:
        hook.remove()


def logits_in_parts(
    body: Any, positions: Sequence[int], vocabulary: int, forward: Callable[[], Any]
) -> Iterator[torch.Tensor]:
    """Yield a model's logits at some positions, in parts of LOGITS_AT_ONCE numbers.

    The body runs once, and the model's own forward without it for each further part.

    Yields:
        [positions of the part, vocabulary].
    """
    size = max(1, LOGITS_AT_ONCE // vocabulary)
    outputs: list[Any] = []

    def cut(module: torch.nn.Module, inputs: Any, output: Any) -> Any:
        outputs.append((output, output.last_hidden_state))
        output.last_hidden_state = output.last_hidden_state[:, :size]
        return output

    with narrow_head(body, positions):
        hook = body.register_forward_hook(cut)
        try:
            logits = forward().logits[0]
        finally:
            hook.remove()
    yield logits
    [(output, states)] = outputs
    placed = body.__dict__.get("forward")  # of a model that is spread over devices
    for start in range(size, len(positions), size):
        output.last_hidden_state = states[:, start : start + size]
        body.forward = lambda *args, **kwargs: output
        try:
            logits = forward().logits[0]
        finally:
            del body.forward
            if placed:
                body.forward = placed
        yield logits


def _last_attention(body: Any) -> Any:
    """Return the module after which each token of a BERT-like body is alone, else None.

    It takes the last attention's output and the states that it is added to, each [texts, tokens,
    hidden].
    """
    is_bert_like = body.config.model_type in BERT_LIKE
    return body.encoder.layer[-1].attention.output if is_bert_like else None


@contextmanager
def without_bias(network: Any) -> Iterator[None]:
    """Leave out the bias of the language-model head within the block."""
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


def target_log_probs(logits: torch.Tensor, targets: Sequence[int]) -> list[float]:
    """Return the log-probability of each row's target token; `logits` is [targets, vocabulary]."""
    ids = torch.tensor(targets, device=logits.device)
    values = logits.gather(1, ids[:, None])[:, 0] - logits.logsumexp(-1)
    scores: list[float] = values.tolist()
    return scores


def split_by_logits(
    batch: list[int], counts: Sequence[int], vocabulary: int
) -> Iterator[list[int]]:
    """Split a batch into parts whose logits stay within LOGITS_AT_ONCE, or of one row."""
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
