"""Shapes are those of the published models, and what does not fit is refused with both figures."""

from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import ModelError, UsageError
from specrag.evaluation.latency.bench import needs
from specrag.evaluation.latency.memory import Need, cache_bytes, check, free_memory, need_of, weight_bytes
from specrag.evaluation.latency.passes import Counted, Pass
from specrag.evaluation.latency.shapes import PRESETS, Shape, scaled, shape_of
from specrag.evaluation.latency.ways import PhaseName
from specrag.types import Role

PUBLISHED = {
    "smollm2-135m": 134_515_008,
    "smollm2-360m": 361_821_120,
    "smollm2-1.7b": 1_711_376_384,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "llama3.2-1b": 1_235_814_400,
    "llama3.2-3b": 3_212_749_824,
    "llama3.1-8b": 8_030_261_248,
    "llama3.1-70b": 70_553_706_496,
}
"""Numbers of parameters on the models' own pages."""
TINY = Shape(name="tiny", hidden=8, layers=2, heads=2, kv=1, intermediate=16, vocab=100)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_has_the_published_number_of_parameters(name: str) -> None:
    """A wrong layer count or a forgotten bias made a shape that is no published model."""
    assert PRESETS[name].parameters == PUBLISHED[name]


def test_parameters_by_hand() -> None:
    # a layer: q 8x8, k and v 8x4, o 8x8, three of 8x16; two norms of 8 a layer, one at the end; embedding 100x8
    assert TINY.matrices == 2 * (64 + 32 + 32 + 64 + 3 * 128)
    assert TINY.parameters == TINY.matrices + 2 * 16 + 8 + 800


def test_a_shape_can_be_written_out() -> None:
    shape = shape_of("qwen2:hidden=128,layers=3,heads=4,kv=2,intermediate=256,vocab=5000,tied=no")
    assert (shape.family, shape.head_dim, shape.kv, shape.tied) == ("qwen2", 32, 2, False)
    assert shape_of("llama:hidden=128,layers=3").heads == 2


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("gpt-9", "There is no shape “gpt-9”; choose one of smollm2-135m"),
        ("llama:hidden=64", "needs hidden=... and layers=..."),
        ("llama:hidden=64,layers=-1", "“layers=-1” is no part of a shape"),
        ("llama:hidden=64,layers=2,name=x", "“name=x” is no part of a shape"),
        ("llama:hidden=70,layers=2,heads=4", "must be an even multiple of its 4 heads"),
        ("llama:hidden=64,layers=2,heads=4,kv=3", "4 heads cannot share 3 heads"),
    ],
)
def test_a_wrong_shape_is_one_sentence(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        shape_of(text)


@pytest.mark.parametrize("ratio", [1, 2, 4, 10, 16])
def test_a_scaled_shape_has_about_the_asked_size(ratio: float) -> None:
    """The curve over the size ratio is drawn at the real ratio, which must be near the asked one."""
    base = PRESETS["smollm2-135m"]
    found = scaled(base, ratio)
    assert found.parameters / base.parameters == pytest.approx(ratio, rel=0.02)
    assert abs(found.layers - base.layers) <= 8
    assert found.hidden % (2 * found.heads) == 0
    assert found.heads % found.kv == 0


def test_memory_by_hand() -> None:
    # embedding in float32, its packed copy as the head in two bytes, matrices in two, norms in four
    assert weight_bytes(TINY, "float16") == 4 * 800 + 2 * 800 + 2 * TINY.matrices + 4 * 40
    assert weight_bytes(TINY, "plain") == 4 * TINY.parameters
    # keys and values, 2 layers, 1 head of 4 numbers of 4 bytes
    assert cache_bytes(TINY, 10) == 2 * 2 * 1 * 4 * 4 * 10
    need = need_of(TINY, "float16", tokens=10, read_at_once=50, logits=3)
    assert need.working == 4 * (50 * (48 + 32) + 2 * 3 * 100)
    assert need_of(TINY, "float16", tokens=1, read_at_once=1, logits=1).working == 4 * 2 * 800, "building"
    assert need.total == need.weights + need.cache + need.working


def test_what_a_plan_needs_by_hand() -> None:
    """The keys and values of the drafts were forgotten, and the logits of the verification."""
    phases = [
        counted("read", "verifier", Pass(tokens=100, pairs=0, logits=1)),
        counted("write", "verifier", *(Pass(tokens=1, pairs=0, logits=1, cached=n) for n in (101, 150))),
        counted("draft read", "drafter", Pass(tokens=60, pairs=0, logits=3)),
        counted("draft write", "drafter", *(Pass(tokens=3, pairs=0, logits=3, cached=n) for n in (70, 90))),
        counted("verify", "verifier", Pass(tokens=200, pairs=0, logits=40)),
    ]
    drafter, verifier = needs(TINY, TINY, phases, load_settings({}, precision="float16"))
    assert (drafter.cache, verifier.cache) == (cache_bytes(TINY, 60 + 90), cache_bytes(TINY, 100 + 150))
    assert drafter.working == 4 * (60 * (48 + 32) + 2 * 3 * 100)
    assert verifier.working == 4 * (200 * (48 + 32) + 2 * 40 * 100)
    assert drafter.weights == verifier.weights == weight_bytes(TINY, "float16")


def counted(name: PhaseName, role: Role, *passes: Pass) -> Counted:
    return Counted(name=name, role=role, passes=passes)


def test_two_models_and_the_rest_of_the_machine_have_to_fit_together() -> None:
    """A machine with room for the models alone had none for Python, and killed it."""
    both = [Need(name="x", weights=10, cache=20, working=30), Need(name="y", weights=1, cache=2, working=3)]
    check(both, 1_000_000_066)
    with pytest.raises(ModelError, match=r"x 0\.0 GB .*, y 0\.0 GB"):
        check(both, 1_000_000_065)


def test_what_does_not_fit_is_refused_with_both_figures() -> None:
    """The process was killed after minutes of building weights, without a word."""
    need = need_of(PRESETS["llama3.1-70b"], "float16", tokens=2000, read_at_once=1500, logits=1)
    with pytest.raises(ModelError, match=r"need 1\d\d\.\d GB of memory and 24\.0 GB are free: llama3.1-70b"):
        check([need], 24_000_000_000)
    check([Need(name="x", weights=10, cache=0, working=0)], 24_000_000_000)


def test_a_container_has_what_its_limit_leaves(tmp_path: Path) -> None:
    """The machine had 64 GB free and the container 4, and the process was killed."""

    def files(name: str, limit: str) -> tuple[str, str]:
        (tmp_path / f"{name}.max").write_text(f"{limit}\n")
        (tmp_path / f"{name}.now").write_text("3000000\n")
        return str(tmp_path / f"{name}.max"), str(tmp_path / f"{name}.now")

    absent = (str(tmp_path / "none"), str(tmp_path / "none"))
    assert free_memory([absent, files("limited", "5000000")]) == 2_000_000
    assert free_memory([absent, files("free", "max")]) > 100_000_000


def test_this_machine_tells_its_free_memory() -> None:
    assert 100_000_000 < free_memory() < 10**14
