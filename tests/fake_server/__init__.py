"""A small, real HTTP server that speaks vLLM's API as it was recorded, and fails on command.

Its model is a script over a tiny vocabulary, so a test knows every token beforehand; its sockets, its streams
and its faults are real. `with FakeServer(write) as server:` listens on a free port of loopback.
"""

from tests.fake_server.faults import Fault, Kind
from tests.fake_server.server import FakeServer, Seen, until
from tests.fake_server.toy import Script, Toy, Vocabulary

__all__ = ["FakeServer", "Fault", "Kind", "Script", "Seen", "Toy", "Vocabulary", "until"]
