"""Served models are measured with exact lengths, and nothing of this machine is taken for theirs."""

from dataclasses import replace

import pytest

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.evaluation.latency.bench import over_servers
from specrag.evaluation.latency.document import document
from specrag.evaluation.latency.interleave import Measured
from specrag.evaluation.latency.markdown import markdown
from specrag.prices import EXAMPLE, EXAMPLE_MACHINE
from tests.fake_server.rig import write
from tests.fake_server.server import FakeServer
from tests.test_latency_bench import PLAN


def test_served_models_are_measured_with_exact_lengths_and_have_no_floor() -> None:
    with FakeServer(write) as drafter, FakeServer(write) as verifier:
        settings = load_settings({}, drafter_url=drafter.url, verifier_url=verifier.url)
        result = over_servers(settings, PLAN, tell=lambda _: None)
        bodies = [seen.body for seen in (*drafter.seen, *verifier.seen) if seen.body.get("stream")]
    assert {body["min_tokens"] for body in bodies} == {3, 6}
    assert all(run.usage.verifier.completion_tokens == 6 for run in result.measured.standard)
    assert all(run.usage.drafter.completion_tokens == 12 for run in result.measured.speculative)
    found = document(result, prices=(EXAMPLE,))
    assert found["floor"] == {}
    assert found["models"]["size_ratio"] is None
    assert found["label"].startswith("Models behind servers")
    assert "there is no floor" in markdown(found)


def test_what_servers_computed_is_not_called_measured_on_this_machine() -> None:
    """The client's processor, its counter of joules and its torch stood beside figures of other machines."""
    told: list[str] = []
    with FakeServer(write) as drafter, FakeServer(write) as verifier:
        settings = load_settings({}, drafter_url=drafter.url, verifier_url=verifier.url)
        result = over_servers(settings, PLAN, tell=told.append)
    assert all(run.joules is None for run in (*result.measured.standard, *result.measured.speculative))
    served = document(result, prices=(EXAMPLE_MACHINE,))
    assert served["energy"]["note"] == "How much the machines of the servers take is not known here."
    assert set(served["environment"]["versions"]) == {"specrag", "python"}
    assert served["environment"]["servers"] == {
        "drafter": result.drafter.device,
        "verifier": result.verifier.device,
    }
    assert served["costs"][0]["what"].endswith("measured behind servers, by the hour")
    counted = tuple(replace(run, joules=5.0) for run in result.measured.standard)
    here = replace(result, energy_told=True, measured=Measured(standard=counted, speculative=counted))
    assert document(here, prices=())["energy"] == served["energy"], "of this machine, which only asked"
    text = markdown(served)
    assert f"Computed by servers (drafter: {result.drafter.device}, verifier: " in text
    assert "asked from " in text
    assert "Measured on" not in text


def test_a_role_without_a_server_is_told() -> None:
    with pytest.raises(UsageError, match="The drafter has no server"):
        over_servers(load_settings({}), PLAN, tell=lambda _: None)
