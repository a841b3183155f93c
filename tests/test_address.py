"""The address of a Chroma server: what is refused, and which header carries the token."""

import pytest
from pydantic import SecretStr

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.retrieval.address import ChromaServer, server_of


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("http://chroma:8000", "http://chroma:8000"),
        (" https://store.example/chroma/ ", "https://store.example/chroma"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_an_address_is_kept_without_its_last_slash(url: str, kept: str) -> None:
    assert server_of(load_settings({}, chroma_url=url)).url == kept


@pytest.mark.parametrize(
    "url",
    [
        "chroma:8000",
        "chroma",
        "ftp://chroma:8000",
        "http://",
        "http://chroma:80000",
        "http://chroma:port",
        "http://[::1",
        "http://user:s3cret@chroma:8000",
        "http://s3cret@chroma:8000",
        "http://chroma:8000?token=s3cret",
        "http://chroma:8000#s3cret",
    ],
)
def test_what_is_no_address_is_one_sentence_that_repeats_no_secret(url: str) -> None:
    with pytest.raises(UsageError, match="SPECRAG_CHROMA_URL") as caught:
        server_of(load_settings({}, chroma_url=url))
    assert "s3cret" not in f"{caught.value!r} {caught.value.__context__!r}"


def test_the_token_goes_where_the_server_looks_for_it_and_is_not_shown() -> None:
    own = ChromaServer(url="https://store.example", token=SecretStr("s3cret"))
    hosted = ChromaServer(url="https://api.trychroma.com", token=SecretStr("s3cret"))
    pretender = ChromaServer(url="https://trychroma.com.example", token=SecretStr("s3cret"))
    assert own.headers == pretender.headers == {"Authorization": "Bearer s3cret"}
    assert hosted.headers == {"X-Chroma-Token": "s3cret"}
    assert ChromaServer(url="https://store.example").headers == {}
    assert "s3cret" not in repr(own)


def test_a_token_is_kept_without_its_line_end() -> None:
    settings = load_settings({}, chroma_url="http://chroma:8000", chroma_token=" s3cret\n")
    assert server_of(settings).headers == {"Authorization": "Bearer s3cret"}
    empty = load_settings({}, chroma_url="http://chroma:8000", chroma_token=" ")
    assert server_of(empty).headers == {}


@pytest.mark.parametrize("token", ["s3cret-\u200b", "s3cret-tök", "s3cret\nmore", "s3cret\x7f"])
def test_a_token_that_no_header_can_carry_is_one_sentence_that_does_not_repeat_it(token: str) -> None:
    settings = load_settings({}, chroma_url="http://chroma:8000", chroma_token=token)
    with pytest.raises(UsageError, match="SPECRAG_CHROMA_TOKEN") as caught:
        server_of(settings)
    assert "s3cret" not in f"{caught.value!r} {caught.value.__context__!r}"


def test_the_settings_reach_the_server() -> None:
    environment = {
        "SPECRAG_CHROMA_URL": "http://chroma:8000",
        "SPECRAG_CHROMA_TENANT": "acme",
        "SPECRAG_CHROMA_DATABASE": "manuals",
        "SPECRAG_CHROMA_TIMEOUT_S": "7",
        "SPECRAG_CONNECT_TIMEOUT_S": "2",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment.items():
            patch.setenv(name, value)
        server = server_of(load_settings())
    assert (server.tenant, server.database, server.stall_s, server.connect_s) == ("acme", "manuals", 7, 2)
