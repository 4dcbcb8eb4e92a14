import pandas as pd
import pytest
import torch
import transformers

from helpers import probing
from medprobe.core.answers import biolama, exact
from medprobe.core.errors import BadInput
from medprobe.core.params import EngineParams
from medprobe.core.tables import BenchmarkTables
from medprobe.engine import soft
from medprobe.methods.optiprompt import Optiprompt

SUBJECTS = ("Velotrine", "Aspirin", "Entecavir", "SNCA")
ANSWERS = ("Karsten syndrome", "chronic pain", "hepatitis B infection", "acute renal failure")
TEMPLATE = "[X] may treat and prevent [Y] ."


def table(count, template=TEMPLATE):
    prompts = [template.replace("[X]", subject) for subject in SUBJECTS[:count]]
    rows = probing.queries(prompts)
    rows["subject"] = SUBJECTS[:count]
    rows["answers"] = [[answer, "alias"] for answer in ANSWERS[:count]]
    rows["answer_ids"] = [[f"A{i}", f"A{i}"] for i in range(count)]
    return rows


def method(folder, budget=None, **settings):
    chosen = Optiprompt.Settings(**{"epochs": 2, "batch": 3, "masks": 3, **settings})
    prober = Optiprompt(folder, chosen, EngineParams(token_budget=budget), 7)
    without_dropout(prober.model.model)
    return prober


def tables(queries, names=None):
    splits = {"train": table(3), "dev": table(2)}
    return BenchmarkTables(queries, probing.candidates() if names is None else names, {}, splits)


def ask(prober, queries, names=None, pass_="7"):
    [task] = prober.tasks(tables(queries, names), 5)
    return prober.predict(task, pass_)


def without_dropout(network):
    for module in network.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def slow_vectors(folder, train, seed):
    """Five more rows of the whole embedding, gradients for all weights, head over all positions."""
    vectors, epochs, batch = 5, 2, 3
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    network = transformers.AutoModelForMaskedLM.from_pretrained(folder)
    without_dropout(network)
    words = tokenizer(" may treat and prevent", add_special_tokens=False)["input_ids"]
    size = network.get_input_embeddings().num_embeddings
    network.resize_token_embeddings(size + vectors, mean_resizing=False)
    weights = network.get_input_embeddings().weight
    with torch.no_grad():
        for i in range(vectors):
            weights[size + i] = weights[words[i * len(words) // vectors]]
    examples = []
    for row in train.itertuples():
        prompt = f"{row.subject} [Y] ."
        answer = probing.piece_ids(tokenizer, prompt, row.answers[0])
        ids = probing.masked_ids(tokenizer, prompt, len(answer))
        at = ids.index(tokenizer.mask_token_id)
        ids[at:at] = range(size, size + vectors)
        examples.append((ids, at + vectors, answer))
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam([weights], lr=3e-3)
    steps = epochs * -(-len(examples) // batch)
    warm, step = max(1, int(steps * 0.1)), 0
    for _ in range(epochs):
        order = torch.randperm(len(examples)).tolist()
        for start in range(0, len(order), batch):
            logs = []
            for i in order[start : start + batch]:
                ids, at, answer = examples[i]
                log_probs = network(torch.tensor([ids])).logits[0, :, :size].log_softmax(-1)
                logs += [log_probs[at + place, token] for place, token in enumerate(answer)]
            network.zero_grad()
            (-sum(logs) / len(logs)).backward()
            weights.grad[:size] = 0
            factor = min((step + 1) / warm, (steps - step) / max(1, steps - warm))
            optimizer.param_groups[0]["lr"] = 3e-3 * factor
            optimizer.step()
            step += 1
    return weights[size:].detach()


@pytest.mark.parametrize("arch", probing.ARCHITECTURES)
def test_vectors_equal_those_of_the_slow_implementation(arch, tiny_model):
    train = table(4)
    losses = method(tiny_model(arch)).train(train, train.iloc[:0], 7)
    expected = slow_vectors(tiny_model(arch), train, 7)
    assert losses.shape == expected.shape
    torch.testing.assert_close(losses, expected, atol=1e-4, rtol=0)


def test_embeddings_that_are_no_table_are_refused(tiny_model):
    with pytest.raises(BadInput, match="ibert: no vectors can stand beside its embeddings"):
        method(tiny_model("ibert")).train(table(4), table(2), 7)


def test_the_language_model_stays_as_it_is(tiny_model):
    prober = method(tiny_model("bert"))
    before = {name: value.clone() for name, value in prober.model.model.state_dict().items()}
    prober.train(table(4), table(2), 7)
    after = prober.model.model.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_the_best_epoch_on_dev_is_taken_by_accuracy_then_by_loss(tiny_model, monkeypatch):
    prober = method(tiny_model("bert"), epochs=4)
    seen = []

    def quality(dev, normalise):
        vectors = prober.model.model.get_input_embeddings().vectors.detach().clone()
        seen.append(vectors)
        return [(0.1, -1.0), (0.5, -3.0), (0.5, -2.0), (0.5, -2.0), (0.2, -1.0)][len(seen) - 1]

    monkeypatch.setattr(prober, "_quality", quality)
    best = prober.train(table(4), table(2), 7)
    assert len(seen) == 5
    assert torch.equal(best, seen[2])
    assert not any(torch.equal(best, vectors) for vectors in (seen[1], seen[3]))


def test_quality_is_accuracy_and_loss_on_dev(tiny_model):
    prober = method(tiny_model("bert"))
    dev = table(2)
    vectors = prober.train(table(4), dev.iloc[:0], 7)
    with soft.install_vectors(prober.model, vectors):
        accuracy, negated = prober._quality(dev, exact)
    assert accuracy == 0
    assert -negated == pytest.approx(loss(prober, dev, vectors), abs=1e-6)


@pytest.mark.parametrize("recipe", ["spread", "released"])
def test_the_bias_is_subtracted_in_decoding_and_not_in_training(recipe, tiny_model):
    vectors, decoded = [], []
    for bias in ("kept", "subtracted"):
        prober = method(tiny_model("bert"), recipe=recipe, bias=bias, equal="text")
        with torch.no_grad():
            head = prober.model.model.get_output_embeddings().bias
            head.copy_(torch.randn(len(head), generator=torch.manual_seed(0)))
        start = prober.recipe.start(TEMPLATE)
        prober.recipe.start = lambda template, start=start: start
        best = prober.train(table(4), table(2), 7)  # decodes the dev split after each epoch
        vectors.append(start.detach())
        with prober.recipe.install_vectors(best):
            slots = prober.slots(table(4))
            answers = prober._predictions(table(4), slots, 3, exact)
            decoded.append(answers["prediction"].tolist())
    assert torch.equal(*vectors)
    assert decoded[0] != decoded[1]


def test_training_teaches(tiny_model):
    train = table(1)
    losses = []
    for rate in (1e-9, 0.1):
        prober = method(tiny_model("bert"), epochs=60, learning_rate=rate, batch=4)
        losses.append(loss(prober, train, prober.train(train, train.iloc[:0], 7)))
    assert losses[1] < losses[0]


def loss(prober, train, vectors):
    with torch.no_grad(), soft.install_vectors(prober.model, vectors):
        return soft.losses(prober.model, prober._examples(train)).item()


def test_each_seed_is_a_replicate(tiny_model):
    prober = method(tiny_model("bert"), seeds=2)
    assert prober.passes() == ["7", "8"]
    answers = ask(prober, table(4), pass_="8")
    assert answers["replicate"].unique().tolist() == ["8"]
    assert answers.groupby("query_id").size().tolist() == [5] * 4
    again = ask(method(tiny_model("bert"), seeds=2), table(4), pass_="8")
    probing.same(again, answers, 1e-6)


def test_vectors_are_trained_once_for_a_relation_and_seed(tiny_model, monkeypatch):
    prober = method(tiny_model("bert"))
    [task] = prober.tasks(tables(table(2)), 5)
    trainings = []
    train = prober.train
    monkeypatch.setattr(prober, "train", lambda *rows: trainings.append(1) or train(*rows))
    prober.predict(task, "7")
    prober.predict(task, "7")
    assert len(trainings) == 1
    prober.predict(task, "8")
    assert len(trainings) == 2


def test_each_relation_of_a_subset_is_a_task_with_its_own_splits(tiny_model):
    other = table(2).assign(relation="s")
    both = BenchmarkTables(
        pd.concat([table(4), other]),
        probing.candidates(),
        others={"train": pd.concat([table(3), other]), "dev": table(1)},
        normalise="biolama",
    )
    first, second = method(tiny_model("bert")).tasks(both, 5)
    assert [len(first.tables[name]) for name in ("train", "dev")] == [3, 1]
    assert [len(second.tables[name]) for name in ("train", "dev")] == [2, 0]
    assert second.queries["relation"].tolist() == ["s", "s"]
    assert first.normalise is biolama


@pytest.mark.parametrize("arch", probing.MASKED)
def test_batch_size_padding_and_order_do_not_matter(arch, tiny_model):
    longer = table(1).assign(query_id="long", subject=" ".join(SUBJECTS * 3))
    longer["prompt"] = TEMPLATE.replace("[X]", longer["subject"].iloc[0])
    queries = pd.concat([table(4), longer], ignore_index=True)
    names = probing.candidates()
    expected = ask(method(tiny_model(arch), 4096), queries)
    probing.same(ask(method(tiny_model(arch), 64), queries), expected)
    small = method(tiny_model(arch), 1)
    probing.same(ask(small, queries, names[::-1]), expected)
    alone = ask(small, queries.iloc[:1], names[:3])
    probing.same(alone, expected[expected["query_id"] == "q0"])
    turned = ask(small, queries[::-1].reset_index(drop=True))
    turned = turned.sort_values(["query_id", "rank"], ignore_index=True)
    probing.same(turned, expected.sort_values(["query_id", "rank"], ignore_index=True))


def test_as_released_a_vector_stands_for_every_token_of_the_template(tiny_model):
    prober = method(tiny_model("bert"), recipe="released")
    tokenizer = prober.model.tokenizer
    template = "Often [Y] is treated by [X] ."
    (slot,) = prober.slots(table(1, template))
    size = len(tokenizer)
    words = [tokenizer(w, add_special_tokens=False)["input_ids"] for w in template.split()]
    counts = [len(ids) for ids in (words[0], *words[2:5], words[-1])]
    before = [i for i in slot.before if i >= size]
    after = [i for i in slot.after if i >= size]
    assert before + after == list(range(size, size + sum(counts)))
    assert len(before) == counts[0]
    assert tokenizer.decode([i for i in slot.after if i < size], skip_special_tokens=True) == (
        "velotrine"
    )


def test_as_released_a_long_template_is_refused(tiny_model):
    prober = method(tiny_model("bert"), recipe="released")
    with pytest.raises(BadInput, match=r"query q0: .*as released there are 20 vectors"):
        prober.slots(table(1, "[X] " + "and " * 20 + "[Y] ."))


def test_as_released_the_first_of_equal_epochs_is_taken(tiny_model):
    prober = method(tiny_model("bert"), recipe="released", bias="subtracted", equal="text")
    with prober.recipe.install_vectors(prober.train(table(4), table(0), 7)):
        assert prober._quality(table(2), biolama) == (0, 0)


def test_as_released_no_vector_is_ever_an_answer(tiny_model):
    answers = ask(
        method(tiny_model("bert"), recipe="released", length_normalisation=False), table(4)
    )
    assert answers.groupby("query_id").size().tolist() == [5] * 4
    assert (answers["prediction"] != "").all()


def test_a_slot_before_its_subject_stays_there(tiny_model):
    prober = method(tiny_model("bert"))
    first, last = (
        prober.slots(table(1, template))[0]
        for template in ("[Y] is treated by [X] .", "[X] treats [Y] .")
    )
    size = len(prober.model.tokenizer)
    assert [i for i in first.after if i >= size] == [i for i in last.before if i >= size]
    assert not [i for i in (*first.before, *last.after) if i >= size]


def test_a_benchmark_without_train_split_is_refused(tiny_model):
    prober = method(tiny_model("bert"))
    with pytest.raises(BadInput, match="toy: no table train"):
        prober.tasks(BenchmarkTables(table(2), probing.candidates()), 5)
    with pytest.raises(BadInput, match="toy: train: no rows of relation 'other'"):
        prober.tasks(tables(table(2).assign(relation="other")), 5)
