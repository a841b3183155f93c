"""Who asks: the cookie of an open page, the name after a login, and what neither tells."""

import hashlib
import re
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.ui.who import COOKIE, login_of
from tests.who_page import serving

DAY_S = 86_400


def asked(url: str, cookie: str = "", **login: Any) -> dict[str, object]:
    """What the endpoint says to a program with this cookie."""
    headers = {"cookie": f"{COOKIE}={cookie}"} if cookie else {}
    client = Client(url, verbose=False, headers=headers, **login)
    try:
        told: dict[str, object] = client.predict(api_name="/who")
        return told
    finally:
        client.close()


@pytest.fixture(scope="module")
def visited(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    home = tmp_path_factory.mktemp("home")
    with serving(home, ACCESS="visitor", VISITOR_DAYS="2") as url:
        yield url


def given(url: str, **headers: str) -> SimpleCookie:
    return SimpleCookie(httpx.get(url, headers=headers).headers["set-cookie"])


def test_a_browser_gets_a_cookie_that_scripts_cannot_read(visited: str) -> None:
    morsel = given(visited)[COOKIE]
    assert re.fullmatch(r"[\w-]{22}", morsel.value)
    assert morsel["httponly"]
    assert morsel["samesite"] == "Lax"
    assert not morsel["secure"]
    assert int(morsel["max-age"]) == 2 * DAY_S


def test_every_browser_is_somebody_else_and_stays_who_it_is(visited: str) -> None:
    """A second visit gives the same cookie again, so that it lasts for as long as somebody comes back."""
    first, second = given(visited)[COOKIE].value, given(visited)[COOKIE].value
    assert first != second
    assert given(visited, cookie=f"other=1; {COOKIE}={first}")[COOKIE].value == first
    one, again, other = asked(visited, first), asked(visited, first), asked(visited, second)
    assert one == again
    assert one["owner"] != other["owner"]
    assert one["id"] != other["id"]


def test_behind_https_the_cookie_also_works_in_a_frame(visited: str) -> None:
    """Spaces shows the page in a frame of another site, where browsers drop a cookie that is Lax."""
    text = httpx.get(visited, headers={"x-forwarded-proto": "https"}).headers["set-cookie"]
    assert text.endswith("HttpOnly; SameSite=None; Secure; Partitioned")


def test_the_store_would_see_a_hash_only(visited: str) -> None:
    cookie = given(visited)[COOKIE].value
    told = asked(visited, cookie)
    assert cookie not in str(told)
    assert told["owner"] == "visitor:" + hashlib.sha256(cookie.encode()).hexdigest()[:32]


@pytest.mark.parametrize("cookie", ["", "short", "x" * 23, "x" * 5000, '"' + "x" * 22])
def test_what_is_no_cookie_of_ours_is_nobody_twice(visited: str, cookie: str) -> None:
    one, again = asked(visited, cookie), asked(visited, cookie)
    assert one["passing"]
    assert again["passing"]
    assert one["owner"] != again["owner"]


def test_only_pages_carry_the_cookie(visited: str) -> None:
    """On answers to programs it would be noise, and a shared cache could hand it to another."""
    assert "set-cookie" not in httpx.get(f"{visited}/health").headers
    assert "set-cookie" not in httpx.get(f"{visited}/config").headers


def test_an_open_page_owns_nothing(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        cookie = given(url)[COOKIE].value
        told = asked(url, cookie)
    assert told["owner"] is None
    assert told["id"] == hashlib.sha256(cookie.encode()).hexdigest()[:32]


def test_with_a_login_people_are_their_names(tmp_path: Path) -> None:
    with serving(tmp_path, ACCESS="login", LOGIN="ada:x:1, bo:two") as url:
        assert asked(url, auth=("ada", "x:1"))["owner"] == "user:ada"
        assert asked(url, auth=("bo", "two"))["owner"] == "user:bo"
        assert httpx.get(f"{url}/config").status_code == 401
        with pytest.raises(ValueError, match="Could not login"):
            asked(url, auth=("ada", "two"))
        refused = httpx.post(f"{url}/login", data={"username": "ada", "password": "two"})
        assert (refused.status_code, refused.json()["detail"]) == (400, "Incorrect credentials.")


def test_names_and_passwords_are_compared_whole() -> None:
    allowed = login_of(load_settings({}, access="login", login="ada:secret,bo:two"))
    assert allowed is not None
    assert allowed("ada", "secret")
    assert not allowed("ada", "two")
    assert not allowed("bo", "secret")
    assert not allowed("ada", "secre")
    assert not allowed("", "")
    assert not allowed("ada", "secret" * 1000)
    assert not allowed("\ud800", "secret")


@pytest.mark.parametrize("text", ["ada", "ada:", ":secret", "ada:1,ada:2", ",", "ada:" + "s" * 300])
def test_a_list_of_users_that_is_none_is_not_shown(text: str) -> None:
    with pytest.raises(UsageError, match="SPECRAG_LOGIN") as refused:
        login_of(load_settings({}, access="login", login=text))
    assert text == "," or text not in str(refused.value)
