"""DisKnE: fine-tuning against the padded, reloading way of the released code.

    python -m bench.diskne            # about two minutes on two free cores

Both ways train the same random encoder, three layers of BERT-base's width, in batches of eight, on
the same premises, as long as MedNLI's. Straightforward: tokenised and loaded anew for each disease,
each text padded to 256 tokens.
"""

import random
import tempfile
import time
from pathlib import Path

import pandas as pd
import torch
import transformers

from bench import made as shared
from medprobe.engine.fine_tuning import Split, TextClassifier
from medprobe.engine.load import use_threads
from medprobe.engine.recipe import FineTuningRecipe

LAYERS = 3  # of BERT-base's width
EXAMPLES = 80  # of a disease's training split; a real one has some 6,000
LONGEST = 256


def examples(count: int, seed: int) -> pd.DataFrame:
    """Premises of 5 to 60 words, most of them some 20, as in MedNLI."""
    rng = random.Random(seed)
    lengths = [min(60, max(5, round(rng.lognormvariate(3.0, 0.5)))) for _ in range(count)]
    texts = [" ".join(rng.choices(shared.SYLLABLES, k=length)) for length in lengths]
    diseases = [" ".join(rng.choices(shared.SYLLABLES, k=2)) for _ in texts]
    labels = [int(place % 11 == 0) for place in range(count)]
    return pd.DataFrame({"premise": texts, "hypothesis": diseases, "label": labels})


def fine_tuning(folder: Path) -> None:
    shared.bert(folder)
    config = transformers.BertConfig(num_hidden_layers=LAYERS)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    table = examples(EXAMPLES, 1)
    recipe = FineTuningRecipe(epochs=1)
    ours = TextClassifier(folder, shared.CPU)
    pairs = [table["premise"].tolist(), table["hypothesis"].tolist()]
    texts = ours.tokenize(pairs, table["label"], LONGEST)
    ours.fine_tune(Split(texts[:8], texts[:8], texts[:8]), recipe, seed=0)  # loads the model
    held = texts[:16]
    begin = time.perf_counter()
    ours.fine_tune(Split(texts, held, held), recipe, seed=0)
    fast = time.perf_counter() - begin
    begin = time.perf_counter()
    straightforward(folder, table, recipe)
    slow = time.perf_counter() - begin
    print(f"fine-tuning, {EXAMPLES} examples, one epoch of a disease: ours {fast:.1f} s")
    print(f"padded to {LONGEST} and reloaded {slow:.1f} s: ours is {slow / fast:.1f} times as fast")


def straightforward(folder: Path, table: pd.DataFrame, recipe: FineTuningRecipe) -> None:
    """Load, tokenise, one epoch, validate and test sixteen examples each."""
    torch.manual_seed(0)
    loaded = shared.plain(folder, "classifier")
    rows = loaded.tokenizer(
        table["premise"].tolist(),
        table["hypothesis"].tolist(),
        truncation="only_first",
        padding="max_length",
        max_length=LONGEST,
        return_tensors="pt",
    )
    labels = torch.tensor(table["label"].tolist())
    optimiser = torch.optim.AdamW(loaded.model.parameters(), lr=recipe.learning_rate)
    loaded.model.train()
    for batch in torch.randperm(len(table)).split(recipe.batch):
        optimiser.zero_grad()
        logits = loaded.model(**{name: value[batch] for name, value in rows.items()}).logits
        torch.nn.functional.cross_entropy(logits, labels[batch]).backward()
        torch.nn.utils.clip_grad_norm_(loaded.model.parameters(), 1.0)
        optimiser.step()
    loaded.model.eval()
    with torch.inference_mode():
        for batch in torch.arange(16).repeat(2).split(recipe.batch):
            loaded.model(**{name: value[batch] for name, value in rows.items()})


def main() -> None:
    transformers.utils.logging.set_verbosity_error()
    use_threads()
    with tempfile.TemporaryDirectory() as folder:
        fine_tuning(Path(folder))


if __name__ == "__main__":
    main()
