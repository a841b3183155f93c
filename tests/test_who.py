"""Who asks: the cookie of an open page, the name after a login, and what neither tells."""

import asyncio
import hashlib
import re
import time
from collections.abc import Iterator
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest
from gradio_client import Client

from specrag.config import load_settings
from specrag.errors import UsageError
from specrag.ui import attempts
from specrag.ui.attempts import ADDRESSES, NAMES, Caller, Failures, LetIn, Patience, Rule, _network_of
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


def tried(url: str, password: str, *, name: str = "ada", address: str = "203.0.113.1") -> httpx.Response:
    """An attempt to log in, through a proxy that says where it comes from."""
    data = {"username": name, "password": password}
    return httpx.post(f"{url}/login", data=data, headers={"x-forwarded-for": address})


def sentence(answer: httpx.Response) -> str:
    return str(answer.json()["detail"])


def test_after_some_wrong_passwords_the_next_one_has_to_wait(tmp_path: Path) -> None:
    """A thousand passwords a second could be tried, and the right one would have been found some day."""
    with serving(tmp_path, ACCESS="login", LOGIN="ada:one,bo:two") as url:
        for number in range(NAMES.free):
            assert sentence(tried(url, "wrong", address=f"203.0.113.{number}")) == "Incorrect credentials."
        refused = tried(url, "one", address="203.0.113.99")
        assert refused.status_code == 400
        assert re.fullmatch(r"There were too many wrong passwords; try again in \d s\.", sentence(refused))
        assert tried(url, "two", name="bo").status_code == 200, "only the name that was tried has to wait"
        time.sleep(int(refused.headers["retry-after"]))
        assert tried(url, "one").status_code == 200
        assert sentence(tried(url, "wrong")) == "Incorrect credentials.", "who was let in begins anew"
        assert attempts.MESSAGE in httpx.get(url).text


@pytest.mark.parametrize("proxies", ["127.0.0.1", "198.51.100.1,127.0.0.0/8"])
def test_an_address_that_tries_many_names_has_to_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, proxies: str
) -> None:
    """One password for each name would never make any of them wait."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", proxies)
    with serving(tmp_path, ACCESS="login", LOGIN="ada:one,bo:two") as url:
        for number in range(ADDRESSES.free):
            assert sentence(tried(url, "123456", name=f"user{number}")) == "Incorrect credentials."
        assert "too many wrong passwords" in sentence(tried(url, "one"))
        assert tried(url, "one", address="203.0.113.2").status_code == 200


def test_the_tools_count_with_the_page(tmp_path: Path) -> None:
    """Who has to wait at one door would go on at the other."""
    pytest.importorskip("mcp", reason="pip install -r requirements-mcp.txt")
    with serving(tmp_path, ACCESS="login", LOGIN="ada:one", MCP="true") as url:
        for _ in range(3 * NAMES.free):  # says nothing of a name, so it is no guess
            assert httpx.post(f"{url}/mcp", json={}).status_code == 401
        for _ in range(NAMES.free):
            assert httpx.post(f"{url}/mcp", json={}, auth=("ada", "wrong")).status_code == 401
        refused = httpx.post(f"{url}/mcp", json={}, auth=("ada", "one"))
        assert refused.status_code == 429
        assert "too many wrong passwords" in refused.json()["error"]
        assert int(refused.headers["retry-after"]) >= 1
        assert "too many wrong passwords" in sentence(tried(url, "one"))


def test_behind_a_proxy_that_nobody_trusts_strangers_keep_nobody_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind nginx in Docker everybody is one address, so twenty wrong passwords of one kept all of them out."""
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "192.0.2.1")
    with serving(tmp_path, ACCESS="login", LOGIN="ada:one,bo:two") as url:
        for number in range(2 * ADDRESSES.free):
            assert sentence(tried(url, "wrong", name=f"user{number}")) == "Incorrect credentials."
        assert tried(url, "one", address="203.0.113.7").status_code == 200
        assert tried(url, "two", name="bo", address="203.0.113.8").status_code == 200


def test_nobody_keeps_a_user_out_where_they_were_let_in_before(tmp_path: Path) -> None:
    """Whoever knew a name could fail again and again, and its owner and their programs always had to wait."""
    pytest.importorskip("mcp", reason="pip install -r requirements-mcp.txt")
    with serving(tmp_path, ACCESS="login", LOGIN="ada:one", MCP="true") as url:
        assert tried(url, "one", address="203.0.113.1").status_code == 200
        for _ in range(NAMES.free):
            assert sentence(tried(url, "wrong", address="203.0.113.2")) == "Incorrect credentials."
        assert "too many wrong passwords" in sentence(tried(url, "one", address="203.0.113.2"))
        assert tried(url, "one", address="203.0.113.1").status_code == 200
        agent = httpx.post(
            f"{url}/mcp", json={}, auth=("ada", "one"), headers={"x-forwarded-for": "203.0.113.1"}
        )
        assert agent.status_code not in (401, 429), "a program sends the password with every request"
        assert "too many wrong passwords" in sentence(tried(url, "one", address="203.0.113.2"))


class Door:
    """A login of ada and bo, asked as the server asks it: behind what notes where a request comes from."""

    def __init__(self) -> None:
        self.now = 1000.0
        words = {"ada": "one", "bo": "two"}
        self.login = Patience(
            lambda name, password: words.get(name) == password, words, clock=lambda: self.now
        )

    def knock(self, name: str, password: str, *, host: str = "8.8.8.8", port: int = 0) -> int | str:
        """The seconds to wait, or "in" or "wrong"; a forwarded address has no port."""
        told: list[int | str] = []

        async def app(*_: Any) -> None:
            wait_s = self.login.wait_s(name)
            told.append(wait_s or ("in" if self.login.tried(name, password) else "wrong"))

        async def nothing(*_: Any) -> Any:
            raise AssertionError

        asyncio.run(Caller(app)({"type": "http", "client": (host, port)}, nothing, nothing))
        return told[0]


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "172.18.0.5", "10.0.0.1", "fd00::5", "::1", "::ffff:172.18.0.5"]
)
def test_a_near_address_counts_only_where_it_was_forwarded(host: str) -> None:
    door = Door()
    for number in range(2 * ADDRESSES.free):
        assert door.knock(f"user{number}", "x", host=host, port=40_000) == "wrong"
    assert door.knock("ada", "one", host=host, port=40_000) == "in"
    door = Door()
    for number in range(ADDRESSES.free):
        assert door.knock(f"user{number}", "x", host=host) == "wrong"
    assert door.knock("ada", "one", host=host) == 1


def test_an_address_waits_a_minute_at_most_and_its_count_fades() -> None:
    """It waited for a quarter of an hour, and every further typing error within an hour began that anew."""
    door = Door()
    for number in range(ADDRESSES.free + 10):
        door.now += 61 * (number >= ADDRESSES.free)
        assert door.knock(f"user{number}", "x") == "wrong"
    for number in range(20):  # each as soon as it may be made
        while (wait_s := door.knock(f"again{number}", "x")) != "wrong":
            assert isinstance(wait_s, int)
            assert 0 < wait_s <= 60
            door.now += wait_s
    door.now += 15 * 60
    for number in range(8):
        assert door.knock(f"later{number}", "x") == "wrong", "the count fades by one each minute"


def test_a_right_password_takes_back_only_what_was_counted_of_its_place() -> None:
    """Every success of the owner gave whoever guesses elsewhere all of their tries again."""
    door = Door()
    assert door.knock("ada", "one") == "in"
    for number in range(NAMES.free + 1):
        door.now += number == NAMES.free
        assert door.knock("ada", "wrong", host="1.1.1.1") == "wrong"
    assert door.knock("ada", "wrong") == "wrong"
    assert door.knock("ada", "one") == "in"
    assert door.knock("ada", "one", host="1.1.1.1") == 2
    for _ in range(NAMES.free):
        assert door.knock("ada", "wrong") == "wrong", "their own typing errors begin anew"
    assert door.knock("ada", "one") == 1, "where they were let in, guesses are counted as well"
    assert door.knock("ada", "one", host="9.9.9.9") == 2, "and elsewhere what was counted there stands"


def test_no_user_pushes_out_what_is_counted_of_another() -> None:
    door = Door()
    assert (door.knock("ada", "one"), door.knock("bo", "two")) == ("in", "in")
    for _ in range(NAMES.free):
        assert door.knock("ada", "wrong") == "wrong"
    assert door.knock("bo", "wrong") == "wrong"
    assert door.knock("ada", "one") == 1


def test_who_was_let_in_there_passes_strangers_at_the_same_address() -> None:
    """A colleague behind the same address, or a crowd behind a public proxy, kept everybody there out."""
    door = Door()
    assert door.knock("ada", "one") == "in"
    for number in range(ADDRESSES.free):
        assert door.knock(f"user{number}", "x") == "wrong"
    assert door.knock("bo", "two") == 1
    assert door.knock("ada", "one") == "in"
    assert door.knock("ada", "wrong") == "wrong"
    assert door.knock("ada", "wrong") == 2, "one guess only: then the address waits for this name too"


def test_where_somebody_was_let_in_is_forgotten_after_weeks_and_bounded() -> None:
    now = [1000.0]
    known = LetIn(["ada", "bo"], clock=lambda: now[0])
    known.add("ada", "home")
    known.add("nobody", "home")
    assert known.was("ada", "home")
    assert not known.was("bo", "home")
    assert not known.was("nobody", "home")
    for number in range(1000):
        known.add("bo", str(number))
    assert known.was("ada", "home"), "no user pushes out another"
    assert len(known) <= 2 * attempts._PLACES
    now[0] += 31 * DAY_S
    assert not known.was("ada", "home")


def test_waits_grow_to_an_end_and_are_forgotten() -> None:
    now = [1000.0]
    failures = Failures(Rule(free=2, longest_s=10.0), clock=lambda: now[0])
    waits = []
    for _ in range(8):
        failures.add("ada")
        waits.append(failures.wait_s("ada"))
    assert waits == [0.0, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]
    now[0] += 9
    assert failures.wait_s("ada") == 1.0
    now[0] += 3601
    failures.add("ada")
    assert failures.wait_s("ada") == 0.0


def test_what_is_remembered_is_bounded_and_no_crowd_pushes_a_user_out() -> None:
    """From one address only, a list of addresses that grew without an end would not have been seen."""
    door = Door()
    crowd = NAMES.room + 100
    for _ in range(NAMES.free):
        assert door.knock("ada", "wrong", host="9.9.9.9") == "wrong"
    for number in range(crowd):
        host = f"2a00:{number:x}::1"
        assert door.knock(f"{number}" * 100, "wrong", host=host) == "wrong"
    login = door.login
    assert door.knock("ada", "one", host="9.9.9.9") == 1
    assert (len(login._others), len(login._addresses)) == (NAMES.room, ADDRESSES.room)
    assert len(login._own) == 1


def test_one_customer_of_ipv6_is_one_address() -> None:
    """Each of them has more addresses than anybody could ever wait for."""
    assert _network_of("2001:db8:1:2:3::4") == _network_of("2001:db8:1:2:ffff::1")
    assert _network_of("2001:db8:1:2::1") != _network_of("2001:db8:1:3::1")
    assert _network_of("192.0.2.1") != _network_of("192.0.2.2")
    assert _network_of("testclient") == "testclient"


def test_ipv4_written_as_ipv6_is_the_address_that_it_is() -> None:
    """On a socket for both, all of IPv4 was one network, so one stranger made everybody wait."""
    assert _network_of("::ffff:192.0.2.1") == _network_of("192.0.2.1")
    assert _network_of("::ffff:192.0.2.1") != _network_of("::ffff:192.0.2.2")


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
