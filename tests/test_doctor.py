"""The doctor tells what is wrong and what to do, whatever state the machine is in, and never raises."""

import dataclasses
import json
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.doctor import Check, Report, check_packages, cpu_flags, diagnose, processor_name
from specrag.measure import matrix_gflops, measure_machine, memory_gb_s
from specrag.retrieval.lock import StoreLock


def _find(report: Report, name: str) -> Check:
    (check,) = [check for check in report.checks if check.name == name]
    return check


def test_a_fresh_machine_is_told_what_will_be_fetched(tmp_path: Path) -> None:
    home = tmp_path / "not" / "there"
    report = diagnose(load_settings(home=home))
    assert (
        _find(report, "weights smollm2-135m-instruct").detail == "not here yet; the first start fetches 92 MB"
    )
    assert "can be made" in _find(report, "home").detail
    assert _find(report, "store").ok
    assert not home.exists(), "the doctor changes nothing"


def test_every_failed_check_has_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file")
    report = diagnose(load_settings(home=tmp_path / "home", drafter="no-such-model", threads=256))
    failed = {check.name for check in report.checks if not check.ok}
    assert {"home", "weights no-such-model", "processor"} <= failed
    assert all(check.remedy for check in report.checks if not check.ok)
    assert report.ok is False


def test_the_document_is_plain_json(tmp_path: Path) -> None:
    document = diagnose(load_settings(home=tmp_path)).to_dict()
    assert document["schema"] == "specrag.doctor/1"
    assert document["figures"] is None
    assert {tuple(check) for check in document["checks"]} == {("name", "ok", "detail", "remedy")}
    json.dumps(document)


def test_an_open_store_is_seen_and_left_alone(tmp_path: Path) -> None:
    lock = StoreLock(tmp_path / "chroma")
    check = _find(diagnose(load_settings(home=tmp_path)), "store")
    assert check.ok
    assert "is in use by" in check.detail
    lock.release()
    assert "no process" in _find(diagnose(load_settings(home=tmp_path)), "store").detail
    StoreLock(tmp_path / "chroma").release()


def test_a_local_model_folder_is_checked(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    name = str(tmp_path / "model")
    check = _find(diagnose(load_settings(home=tmp_path, embedder=name)), f"weights {name}")
    assert not check.ok
    assert "has no config.json" in check.detail


def test_a_hub_model_is_not_fetched_by_a_diagnosis(tmp_path: Path) -> None:
    assert _find(diagnose(load_settings(home=tmp_path, embedder="org/name")), "weights org/name").ok


@pytest.mark.parametrize(
    ("line", "ok", "detail"),
    [
        ("pytest>=1", True, ""),
        ("pytest>=1000", False, "is outside >=1000"),
        ("no-such-package-at-all>=1", False, "not installed"),
        ("no-such-package-at-all; python_version < '3'", None, ""),
        ("what is this?", False, "InvalidRequirement"),
    ],
)
def test_packages_are_compared_with_their_ranges(line: str, ok: bool | None, detail: str) -> None:
    checks = list(check_packages([line]))
    assert [check.ok for check in checks] == ([] if ok is None else [ok])
    assert all(detail in check.detail for check in checks)


def test_a_local_build_is_the_same_release() -> None:
    """`torch<=2.13.0` must admit 2.13.0+cpu, which compares as newer."""
    (check,) = check_packages(["torch>=2.8,<=2.13.0"])
    assert check.ok, check.detail


def test_measured_figures_are_a_line_and_a_value(tmp_path: Path) -> None:
    report = diagnose(load_settings(home=tmp_path), measure=True)
    assert "GFLOP/s" in _find(report, "speed").detail
    assert report.to_dict()["figures"]["matrix_gflops"] > 0


def test_processor_flags_are_read_by_name(tmp_path: Path) -> None:
    info = tmp_path / "cpuinfo"
    info.write_text("processor : 0\nflags : fpu avx2 avx512f amx_tile\n\nprocessor : 1\nflags : fpu avx2\n")
    assert cpu_flags(info) == ("AVX2", "AVX-512", "AMX")
    assert cpu_flags(tmp_path / "absent") == ()


def test_the_processor_has_the_name_of_its_maker(tmp_path: Path) -> None:
    """Figures of two machines were both called “x86_64”."""
    info = tmp_path / "cpuinfo"
    info.write_text(
        "processor\t: 0\nmodel name\t: Fast 9: Gold\nprocessor\t: 1\nmodel name\t: Fast 9: Gold\n"
    )
    assert processor_name(info) == "Fast 9: Gold"
    assert processor_name(tmp_path / "absent") in {platform.processor(), platform.machine()}


def test_the_doctor_does_not_load_the_models_libraries(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path\n"
        "from specrag.config import load_settings; from specrag.doctor import diagnose\n"
        "diagnose(load_settings(home=Path(sys.argv[1])))\n"
        "print(sorted({'torch', 'transformers', 'chromadb', 'gradio'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_figures_follow_from_the_median_time() -> None:
    """Runs of 1, 1 and 100 seconds count as 1 second each, and the faster library counts."""
    slower = [200.0, 203.0, 203.0, 206.0, 206.0, 209.0]
    moments = iter([0.0, 1.0, 1.0, 2.0, 2.0, 102.0, *slower])
    assert matrix_gflops(threads=1, size=10, repeats=3, clock=lambda: next(moments)) == pytest.approx(
        2e3 / 1e9
    )
    moments = iter([0.0, 2.0])
    assert memory_gb_s(threads=1, megabytes=4, repeats=1, clock=lambda: next(moments)) == pytest.approx(0.002)


def test_measuring_leaves_the_number_of_threads_alone() -> None:
    import torch

    before = torch.get_num_threads()
    figures = measure_machine(threads=before + 1)
    assert torch.get_num_threads() == before
    assert figures.threads == before + 1
    assert 0 < figures.matrix_gflops < 1e6
    assert 0 < figures.memory_gb_s < 1e5
    assert dataclasses.asdict(figures).keys() == {"matrix_gflops", "memory_gb_s", "threads", "repeats"}
