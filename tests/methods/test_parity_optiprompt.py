"""OptiPrompt's vectors and their training, against the code that BioLAMA released."""

from functools import cache, partial

import pandas as pd
import pytest
import torch
import transformers

from helpers import parity
from medprobe.engine import soft
from medprobe.methods.optiprompt import Optiprompt

INPUTS, OUTPUTS = parity.read("optiprompt", "inputs"), parity.read("optiprompt", "outputs")
CASES = [(model, relation) for model in INPUTS["models"] for relation in INPUTS["relations"]]
LOSS, VECTOR = 1e-4, 1e-5  # what rounding may change in a loss, and in a vector's number
KINDS = ("as_released", "attention_mask", "attention_mask_old_vocabulary")


def prober(model: str, recipe: str) -> Optiprompt:
    """With the settings that BioLAMA's published numbers were made by, the recipe aside."""
    input_settings = INPUTS["settings"]
    settings = Optiprompt.Settings(
        recipe=recipe,
        length_normalisation=False,
        bias="subtracted",
        equal="text",
        epochs=input_settings["epochs"],
        batch=input_settings["batch_size"],
        learning_rate=input_settings["learning_rate"],
    )
    return Optiprompt(parity.folder(model), settings, parity.ENGINE, input_settings["seed"])


def table(model: str, relation: str) -> pd.DataFrame:
    """The examples in the order of training, as a benchmark's train table has them."""
    template = INPUTS["relations"][relation]["template"]
    examples = OUTPUTS[model][relation]["examples"]
    return pd.DataFrame(
        {
            "query_id": f"{relation}:{i}",
            "subject": example["subject"],
            "prompt": template.replace("[X]", example["subject"]),
            "answers": [example["object"]],
            "answer_ids": [example["object"]],
        }
        for i, example in enumerate(examples)
    )


@cache
def trained(model: str, relation: str, kind: str) -> tuple[list[float], list[torch.Tensor]]:
    """The loss of each step, and the vectors before each and after the last, from their start and
    in their order of examples. Decoding of a query comes before each epoch and after the last."""
    theirs = OUTPUTS[model][relation]
    method = prober(model, "released")
    losses, vectors = [], []
    start = torch.tensor(theirs["initial_vectors"])
    plain = method.recipe.losses if kind == "as_released" else partial(soft.losses, method.model)

    def recorded(examples):
        network = method.model.model
        vectors.append(network.get_input_embeddings().vectors.detach().clone())
        losses.append(plain(examples))
        return losses[-1]

    method.recipe.losses = recorded
    method.recipe.start = lambda template: start
    method.recipe.order = lambda count, previous: list(range(count))
    if kind == "attention_mask_old_vocabulary":
        method.recipe.install_vectors = partial(soft.install_vectors, method.model)
    rows = table(model, relation)
    method.train(rows, rows.iloc[:1], 0)
    return [loss.item() for loss in losses], [*vectors, start.detach()]


def after(model: str, relation: str, kind: str, step: int) -> torch.Tensor:
    """Ours after so many steps, as many vectors as the template has tokens."""
    vectors = trained(model, relation, kind)[1]
    return vectors[step][: OUTPUTS[model][relation]["used_vectors"]]


def theirs_after(model: str, relation: str, kind: str, step: int) -> torch.Tensor:
    soft_vectors = torch.tensor(OUTPUTS[model][relation][kind]["vectors"][str(step)])
    return soft_vectors[: OUTPUTS[model][relation]["used_vectors"]]


def steps(model: str, relation: str, kind: str) -> list[int]:
    return [int(step) for step in OUTPUTS[model][relation][kind]["vectors"]]


@pytest.mark.parametrize(("model", "relation"), CASES)
def test_examples_have_the_same_tokens(model, relation):
    method = prober(model, "released")
    mask = method.model.tokenizer.mask_token_id
    our_examples = method._examples(table(model, relation))
    for (ids, positions, _), example in zip(
        our_examples, OUTPUTS[model][relation]["examples"], strict=True
    ):
        assert positions == example["masked"]
        assert ids == [mask if i in positions else t for i, t in enumerate(example["ids"])]


@pytest.mark.parametrize(("model", "relation"), CASES)
def test_vectors_start_from_the_templates_tokens(model, relation):
    theirs, method = OUTPUTS[model][relation], prober(model, "released")
    count = theirs["used_vectors"]
    our_vectors = method.recipe.start(INPUTS["relations"][relation]["template"])
    assert our_vectors.shape == torch.Size([20, method.model.config.hidden_size])
    torch.testing.assert_close(our_vectors[:count], torch.tensor(theirs["initial_vectors"])[:count])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("model", "relation"), CASES)
def test_training_goes_the_same_way(model, relation, kind):
    losses, _ = trained(model, relation, kind)
    assert losses == pytest.approx(OUTPUTS[model][relation][kind]["losses"], abs=LOSS)
    for step in steps(model, relation, kind):
        our_vectors, their_vectors = (
            after(model, relation, kind, step),
            theirs_after(model, relation, kind, step),
        )
        torch.testing.assert_close(our_vectors, their_vectors, atol=VECTOR, rtol=0)


def close(model: str, relation: str, recipe: str, kind: str) -> bool:
    """Is the gradient of the first step, from their vectors and examples, theirs?"""
    theirs, method = OUTPUTS[model][relation], prober(model, "released")
    vectors = torch.tensor(theirs["initial_vectors"], requires_grad=True)
    batch = method._examples(table(model, relation))[: method.settings.batch]
    chosen = soft.Spread(method.model, 1) if recipe == "spread" else method.recipe
    with chosen.install_vectors(vectors):
        chosen.losses(batch).backward()
    their_gradient = torch.tensor(theirs[kind]["first_gradient"])
    return bool((vectors.grad[: len(their_gradient)] - their_gradient).abs().max() < VECTOR)


@pytest.mark.parametrize(("model", "relation"), CASES)
def test_our_gradient_is_theirs_with_padding_hidden_and_no_rows_in_the_head(model, relation):
    assert close(model, relation, "spread", "attention_mask_old_vocabulary")


@pytest.mark.parametrize(("model", "relation"), CASES)
def test_our_optimiser_goes_another_way(model, relation):
    ours, released = prober(model, "spread").recipe, prober(model, "released").recipe
    moved = []
    for recipe in (ours, released):
        vector = torch.zeros(1, requires_grad=True)
        vector.grad = torch.ones(1)
        recipe.optimizer(vector, 1.0).step()
        moved.append(-vector.item())
    assert moved == pytest.approx([1, 0.1 / 0.001**0.5], rel=1e-3)
    assert [ours.schedule(2, 20)(0), released.schedule(2, 20)(0)] == [0.5, 0]


@pytest.mark.parametrize(("warm", "steps"), [(0, 1), (0, 9), (1, 10), (2, 20), (3, 3)])
def test_the_rate_goes_as_in_transformers(warm, steps):
    share = prober("bert-taught", "released").recipe.schedule(warm, steps)
    optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
    scheduler = transformers.get_linear_schedule_with_warmup(optimizer, warm, steps)
    for step in range(steps):
        assert share(step) == scheduler.get_last_lr()[0]
        optimizer.step()
        scheduler.step()
