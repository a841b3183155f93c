"""Which server is asked."""

from contextlib import ExitStack

import pytest

from specrag.models.server.faults import Fault
from specrag.models.server.pool import Pool

A, B, C = "http://a/v1", "http://b/v1", "http://c/v1"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def fail(pool: Pool, url: str, kind: str = "dropped", retry_after_s: float | None = None) -> None:
    with pytest.raises(Fault), pool.lease(only=pool.at(url)):
        raise Fault(kind, url, "x", retry_after_s)  # type: ignore[arg-type]


def asked(pool: Pool) -> str:
    with pool.lease() as endpoint:
        return endpoint.url


def test_the_one_with_the_least_to_do_is_asked() -> None:
    pool = Pool((A, B, C))
    with pool.lease(2) as first, pool.lease(1) as second, pool.lease(1) as third, pool.lease(1) as fourth:
        assert [first.url, second.url, third.url] == [A, B, C]
        assert fourth.url == B
        assert pool.running == 5
    assert pool.running == 0


def test_one_that_failed_rests_longer_each_time_and_comes_back() -> None:
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    for rest in (1, 2, 4):
        fail(pool, A)
        clock.now += rest - 0.1
        assert asked(pool) == B
        clock.now += 0.2
        with pool.lease(only=pool.at(B)):  # busy, so the other one is asked
            if rest == 4:
                assert asked(pool) == A
    fail(pool, A)
    clock.now += 1.1
    with pool.lease(only=pool.at(B)):
        assert asked(pool) == A  # it had worked in between, so its rest is a first one again


def test_a_rest_has_an_end_however_often_it_failed() -> None:
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    for _ in range(50):
        fail(pool, A)
    clock.now += 61
    with pool.lease(only=pool.at(B)):
        assert asked(pool) == A


def test_a_server_is_left_alone_for_as_long_as_it_asks() -> None:
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    fail(pool, A, "busy", 20.0)
    clock.now += 19
    assert asked(pool) == B
    with pool.lease(only=pool.at(B)):
        clock.now += 2
        assert asked(pool) == A


def test_when_all_rest_the_one_that_has_rested_most_is_asked() -> None:
    """Whoever has one server only is not sent away because it failed a moment ago."""
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    fail(pool, A)
    clock.now += 0.5
    fail(pool, B)
    assert asked(pool) == A
    alone = Pool((A,), clock=clock)
    fail(alone, A)
    assert asked(alone) == A


def test_a_second_try_goes_elsewhere_if_there_is_an_elsewhere() -> None:
    pool = Pool((A, B))
    with pool.lease(avoid=pool.at(A)) as endpoint:
        assert endpoint.url == B
    alone = Pool((A,))
    with alone.lease(avoid=alone.at(A)) as endpoint:
        assert endpoint.url == A


def test_what_the_request_did_wrong_is_not_the_servers_fault() -> None:
    pool = Pool((A, B))
    fail(pool, A, "too_long")
    assert asked(pool) == A


def test_a_server_that_went_away_is_asked_anew_what_it_can_do() -> None:
    pool = Pool((A,))
    endpoint = pool.at(A)
    endpoint.abilities = object()  # type: ignore[assignment]  # whatever was known
    fail(pool, A, "busy")
    assert endpoint.abilities is not None
    fail(pool, A, "unreachable")
    assert endpoint.abilities is None


def test_a_cancelled_request_leaves_no_trace() -> None:
    pool = Pool((A,))
    with pytest.raises(KeyboardInterrupt), pool.lease(3):
        raise KeyboardInterrupt
    assert (pool.running, pool.at(A).failures) == (0, 0)


def test_a_server_that_fails_for_days_is_still_only_resting() -> None:
    """Doubling a rest a thousand times is more than a number holds."""
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    for _ in range(1100):
        fail(pool, A)
    assert 0 < pool.at(A).rests_until - clock.now <= 60
    assert asked(pool) == B


def test_one_blip_with_many_streams_is_one_failure() -> None:
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    streams = [pool.lease(only=pool.at(A)) for _ in range(8)]
    for stream in streams:
        stream.__enter__()
    for stream in streams:
        stream.__exit__(Fault, Fault("dropped", A, "x"), None)
    assert pool.at(A).failures == 1
    assert pool.at(A).rests_until == clock.now + 1


def test_after_its_rest_one_request_tries_a_server_and_the_others_go_elsewhere() -> None:
    """A server that hangs must not take every request with it again."""
    clock = Clock()
    pool = Pool((A, B), clock=clock)
    fail(pool, A)
    clock.now += 2
    with ExitStack() as held:
        urls = [held.enter_context(pool.lease(0)).url for _ in range(3)]  # those that only tokenise as well
        urls += [held.enter_context(pool.lease()).url for _ in range(6)]
        assert urls.count(A) == 1
    assert pool.at(A).failures == 0  # the one that tried it came back


def test_a_fault_of_another_server_is_not_held_against_this_one() -> None:
    """A label is tokenised by any server while this one writes."""
    pool = Pool((A, B))
    with pytest.raises(Fault), pool.lease(only=pool.at(A)):
        raise Fault("dropped", B, "x")
    assert pool.at(A).failures == 0
