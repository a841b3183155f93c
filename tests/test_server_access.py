"""From settings to the servers of a role: addresses are checked, and a key shows up nowhere."""

from pathlib import Path

import pytest

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.models.server.access import Access, access_of
from specrag.models.server.faults import Fault, of_status, raised, sentence
from specrag.models.server.model import ServerModel
from specrag.overrides import with_overrides


def drafter(**given: object) -> Access:
    found = access_of(load_settings({}, **given), "drafter")
    assert found is not None
    return found


def test_without_an_address_the_model_runs_here() -> None:
    assert access_of(load_settings({}), "drafter") is None
    assert access_of(load_settings({}, drafter_url=" , "), "drafter") is None


def test_addresses_are_made_complete_and_each_counts_once() -> None:
    given = "http://a:8001, http://a:8001/v1/ https://b/models/v1,http://[::1]:9"
    assert drafter(drafter_url=given).urls == (
        "http://a:8001/v1",
        "https://b/models/v1",
        "http://[::1]:9/v1",
    )


def test_the_name_is_left_to_the_server_unless_it_is_set() -> None:
    assert drafter(drafter_url="http://a").any_model
    chosen = drafter(drafter_url="http://a", drafter="llama")
    assert (chosen.model, chosen.any_model) == ("llama", False)


def test_settings_that_were_copied_leave_it_to_the_server_as_well() -> None:
    """`Rag(...)` and a run's own options copy all settings, those that nobody set among them."""
    access = access_of(with_overrides(load_settings({}), {"drafter_url": "http://a"}), "drafter")
    assert access is not None
    assert access.any_model


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("localhost:8001", "no address"),
        ("ftp://a/v1", "no address"),
        ("http://", "no address"),
        ("http://a:99999999", "no address"),
        ("http://me:hunter2@a/v1", "SPECRAG_DRAFTER_KEY"),
        ("http://a/v1?key=hunter2", "must end with its path"),
    ],
)
def test_a_wrong_address_is_one_sentence_without_what_may_be_secret(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        access_of(load_settings({}, drafter_url=url), "drafter")
    assert "SPECRAG_DRAFTER_URL" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_missing_authority_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="SPECRAG_SERVER_CA"):
        drafter(drafter_url="https://a", server_ca=tmp_path / "none.pem")


def test_a_key_is_in_no_text() -> None:
    settings = load_settings({}, drafter_url="http://a", drafter_key="hunter2", chroma_token="swordfish")
    access = access_of(settings, "drafter")
    assert access is not None
    assert access.key == "hunter2"
    fault = Fault("failed", "http://a/v1", "status 500: bad key hunter2")
    for text in (repr(access), str(settings), repr(settings.public()), sentence(fault, access)):
        assert "hunter2" not in text
        assert "swordfish" not in text


@pytest.mark.parametrize(
    ("status", "message", "kind", "passing"),
    [
        (401, "no", "refused", False),
        (403, "no", "refused", False),
        (404, "The model `x` does not exist.", "no_model", False),
        (404, "Not Found", "rejected", False),
        (429, "slow down", "busy", True),
        (503, "loading", "busy", True),
        (500, "boom", "failed", True),
        (502, "", "failed", True),
        (400, "This model's maximum context length is 4096 tokens.", "too_long", False),
        (400, "Unknown field", "rejected", False),
        (307, "", "rejected", False),
    ],
)
def test_a_status_says_what_to_do_about_it(status: int, message: str, kind: str, passing: bool) -> None:
    fault = of_status("http://a/v1", status, message)
    assert (fault.kind, fault.passing) == (kind, passing)
    text = str(raised(fault, Access(role="verifier", urls=("http://a/v1",))))
    assert text.startswith("The verifier's server http://a/v1 ")
    assert text.endswith(".")


def test_what_a_server_says_is_kept_short() -> None:
    fault = of_status("http://a/v1", 500, "word " * 1000)
    assert len(sentence(fault, Access(role="drafter", urls=("http://a/v1",)))) < 400


def test_what_a_server_says_does_not_steer_the_terminal() -> None:
    """Its words stand in an error; codes in them could clear the screen, or rename the window."""
    fault = of_status("http://a/v1", 500, "\x1b]0;mine\x07 \x1b[2Jout of memory")
    said = sentence(fault, Access(role="drafter", urls=("http://a/v1",)))
    assert said.isprintable()
    assert "out of memory" in said


@pytest.mark.parametrize(
    ("header", "seconds"), [("3", 3.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), (None, None)]
)
def test_a_server_that_asks_for_patience_gets_it(header: str | None, seconds: float | None) -> None:
    assert of_status("http://a/v1", 429, "", retry_after=header).retry_after_s == seconds


@pytest.mark.parametrize("key", ["sk-first\nsk-second", "sk-\u200bpasted", "sk-“quoted”"])
def test_a_key_that_cannot_be_one_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(UsageError, match="SPECRAG_VERIFIER_KEY") as caught:
        access_of(load_settings({}, verifier_url="http://a", verifier_key=key), "verifier")
    assert "sk-" not in str(caught.value)


def test_a_key_from_a_file_with_its_newline_is_the_key() -> None:
    access = access_of(load_settings({}, verifier_url="http://a", verifier_key="sk-1\n"), "verifier")
    assert access is not None
    assert access.key == "sk-1"


def test_a_file_without_an_authority_is_one_sentence(tmp_path: Path) -> None:
    empty = tmp_path / "ca.pem"
    empty.write_text("no certificate here", encoding="utf-8")
    access = drafter(drafter_url="https://127.0.0.1:9", server_ca=empty)
    with pytest.raises(UsageError, match="SPECRAG_SERVER_CA"):
        ServerModel(access).connect_now()
