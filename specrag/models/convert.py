"""A script, run in a process of its own: one GGUF file in, one transformers folder with safetensors out.

A process of its own gives the memory back, keeps the libraries' progress bars off the terminal and leaves
their settings alone. It imports nothing of specrag, and it ends when its parent does.
"""

import os
import sys
import threading
from pathlib import Path
from typing import Any


def convert(source: Path, target: Path) -> None:
    """Read the GGUF file in `source` with transformers and save model and tokenizer as fp32 in `target`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    (gguf,) = source.glob("*.gguf")
    tokenizer = AutoTokenizer.from_pretrained(str(source), gguf_file=gguf.name)
    model: Any = AutoModelForCausalLM.from_pretrained(str(source), gguf_file=gguf.name, dtype=torch.float32)
    # The weights are plain fp32 by now, but save_pretrained refuses while these two say "GGUF".
    model.hf_quantizer = None
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    tokenizer.save_pretrained(str(target))
    model.save_pretrained(str(target))


def _end_with_parent() -> None:
    # The parent holds the other end of our standard input: end of file means that it is gone. Read without
    # Python's buffer, whose lock would stop the interpreter from ending while this thread waits.
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_parent, daemon=True).start()
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
