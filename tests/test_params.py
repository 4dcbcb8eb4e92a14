"""params.yaml is checked: a person learns which key is wrong, and which was meant."""

from pathlib import Path

import pytest

from medprobe import params
from medprobe.errors import BadInput


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "params.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("sed: 1", "unknown key sed (did you mean 'seed'?)"),
        ("engine: {devise: cpu}", "unknown key engine.devise (did you mean 'device'?)"),
        (
            "models: {masked: {a: {hubb: x}}}",
            "unknown key models.masked.a.hubb (did you mean 'hub'",
        ),
        ("seed: many", "seed: Input should be a valid integer"),
        ("engine: {precision: float16}", "engine.precision: Input should be 'float32' or"),
        ("score: {confidence: 2}", "score.confidence: Input should be less than 1"),
        ("seed: [1", "not YAML"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_key(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        params.load(written(tmp_path, text))
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_no_file_says_where_to_run(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file; run medprobe in the project's folder"):
        params.load(tmp_path / "params.yaml")


def test_a_model_is_found_by_name_whatever_its_kind(tmp_path: Path) -> None:
    loaded = params.load(written(tmp_path, "models: {causal: {gpt: {folder: x}}}"))
    assert loaded.models.find("gpt")[0] == "causal"
    with pytest.raises(BadInput, match=r"no model 'gtp' \(did you mean 'gpt'\?\)"):
        loaded.models.find("gtp")


def test_the_projects_own_params_are_right() -> None:
    params.load(Path(__file__).parent.parent / "params.yaml")
