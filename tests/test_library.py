"""Collections as people see them: their own and no others', with titles, and gone when they are deleted."""

import os
import tempfile
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from specrag.errors import SpecragError, StoreError, StoreUnreachable, UsageError
from specrag.ingest.jobs.jobs import IngestJobs
from specrag.library.expiry import Housekeeper
from specrag.library.library import OPERATOR, OWN, SAMPLE, Library
from specrag.library.visitors import USER, Visitor
from specrag.retrieval.base import CollectionInfo
from specrag.retrieval.chroma import ChromaStore
from specrag.ui.tabs import exports
from specrag.ui.tabs.exports import exported
from tests.shelf_rig import OtherEmbedder, Rig, rig, visitor

ADA, BO = visitor("ada"), visitor("bo")
ANYBODY = Visitor(id="anybody")
PATIENCE_S = 30


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Rig]:
    with rig(tmp_path, access="visitor", visitor_days=7, max_collections=3) as parts:
        yield parts


def names(library: Library, who: Visitor) -> list[str]:
    return [shelf.name for shelf in library.collections(who)]


def titles(library: Library, who: Visitor) -> list[str]:
    return [shelf.title for shelf in library.collections(who)]


def refused(action: Callable[[], object], kind: type[SpecragError] = StoreError) -> str:
    with pytest.raises(kind) as error:
        action()
    return str(error.value)


def test_a_list_begins_with_the_sample_and_ones_own_although_neither_exists(made: Rig) -> None:
    first, second = made.library.collections(ADA)
    assert (first.name, first.title, first.read_only, first.default) == (SAMPLE, "Sample", True, False)
    assert (second.title, second.read_only, second.default) == ("Your documents", False, True)
    assert second.name == made.library.default(ADA) != made.library.default(BO)
    assert made.library.default(OPERATOR) == OWN
    assert made.store.collections() == ()


def test_collections_are_listed_by_title_with_what_is_in_them(made: Rig) -> None:
    made.library.create(ADA, "ponds")
    ants = made.library.create(ADA, "Ants", "All about ants.")
    made.add(ants.name, "Ants carry leaves.")
    assert titles(made.library, ADA) == ["Sample", "Your documents", "Ants", "ponds"]
    shelf = made.library.shelf(ADA, ants.name)
    assert (shelf.description, shelf.documents, shelf.chunks, shelf.stale) == ("All about ants.", 1, 1, 0)
    assert not shelf.mismatch


def test_nobody_sees_what_is_anothers(made: Rig) -> None:
    """The bug: any visitor of a public page could ask everybody's documents."""
    name = made.library.create(ADA, "Diary").name
    made.library.check_writable(ADA, made.library.default(ADA))
    assert titles(made.library, BO) == ["Sample", "Your documents"]
    assert not {name, made.library.default(ADA)} & set(names(made.library, BO))
    assert {name, made.library.default(ADA)} <= set(names(made.library, OPERATOR))


@pytest.mark.parametrize(
    "action",
    [
        lambda library, name: library.check_readable(BO, name),
        lambda library, name: library.check_writable(BO, name),
        lambda library, name: library.rename(BO, name, "Mine"),
        lambda library, name: library.describe(BO, name, "Mine"),
        lambda library, name: library.delete(BO, name),
        lambda library, name: library.delete_document(BO, name, "0" * 16),
        lambda library, name: library.export(BO, name, Path("unused")),
        lambda library, name: library.find(BO, name),
        lambda library, name: library.shelf(BO, name),
    ],
)
def test_a_foreign_collection_is_refused_as_one_that_does_not_exist(
    made: Rig, action: Callable[[Library, str], object]
) -> None:
    """Otherwise a guess of a name would tell whether it exists. What is refused has changed nothing."""
    theirs = made.library.create(ADA, "Diary").name
    made.add(theirs, "Dear diary.")
    first = made.library.default(ADA)
    made.add(first, "Another page.")
    nothing = "c-000000000000"
    words = refused(lambda: action(made.library, nothing)).replace(nothing, "X")
    for name in (theirs, first):
        assert refused(partial(action, made.library, name)).replace(name, "X") == words
    assert made.library.shelf(ADA, theirs).title == "Diary"
    assert made.library.shelf(ADA, theirs).documents == 1


class Counting(ChromaStore):
    """Notes whose documents were looked at to count them."""

    def __init__(self) -> None:
        super().__init__(None)
        self.counted: set[str] = set()

    def infos(self, *, counted: Collection[str] | None = None) -> list[CollectionInfo]:
        self.counted |= set(self.collections() if counted is None else counted)
        return super().infos(counted=counted)


def test_no_event_of_a_page_reads_the_documents_of_others(tmp_path: Path) -> None:
    """The bug: each question and each click read the catalogue of all visitors, half a second of 5,000 lines."""
    store = Counting()
    with rig(tmp_path, store=store, access="visitor") as made:
        made.add(made.library.create(BO, "Large").name, "Somebody else's page.")
        name = made.library.create(ADA, "Diary").name
        made.add(name, "Dear diary.")
        store.counted.clear()
        made.library.check_readable(ADA, name)
        made.library.check_writable(ADA, name)
        made.library.touch(ADA, name)
        assert made.library.find(ADA, "Diary") == name
        assert store.counted == set()
        assert made.library.shelf(ADA, name).documents == 1
        assert [shelf.documents for shelf in made.library.collections(ADA)] == [0, 0, 1]
        assert store.counted == {name}
        assert [shelf.documents for shelf in made.library.collections(OPERATOR)] == [0, 0, 1, 1]
    store.close()


def test_a_title_does_not_find_what_is_anothers(made: Rig) -> None:
    made.library.create(ADA, "Diary")
    assert "There is no collection “Diary”" in refused(lambda: made.library.find(BO, "Diary"))
    mine = made.library.create(BO, "Diary").name
    assert made.library.find(BO, " dIARY ") == mine


def test_a_touch_changes_nothing_of_another(made: Rig) -> None:
    theirs = made.library.create(ADA, "Diary").name
    before = made.store.collection(theirs)
    made.clock.pass_(days=1)
    made.library.touch(BO, theirs)
    made.library.touch(BO, "c-000000000000")
    assert made.store.collection(theirs) == before


def test_the_operator_finds_titles_and_is_asked_which_of_several(made: Rig) -> None:
    """Two processes may have given a title at the same time."""
    for name in ("a-diary", "b-diary"):
        made.store.ensure_collection(name, made.indexer.embedder_fingerprint, labels={"title": "Diary"})
    assert "Several collections are called “Diary”" in refused(lambda: made.library.find(OPERATOR, "Diary"))
    assert made.library.find(OPERATOR, "your documents") == OWN


def test_the_operators_files_do_not_go_where_a_visitor_says(made: Rig) -> None:
    """The bug: a visitor who had titled a collection “papers” was given the files of `--collection papers`."""
    theirs = made.library.create(ADA, "Papers").name
    first = made.library.default(ADA)
    made.add(first, "Found by nobody.")
    made.library.rename(ADA, first, "Reports")
    assert made.library.called(OPERATOR, "papers") == []
    assert "no collection" in refused(lambda: made.library.find(OPERATOR, "Reports"))
    assert made.library.place("papers") == "papers"
    assert made.library.place("reports") == "reports"
    assert made.library.find(OPERATOR, "papers") == "papers"
    assert made.library.find(OPERATOR, theirs) == theirs
    assert made.library.shelf(ADA, theirs).documents == 0


def test_an_open_page_shares_everything_but_what_had_an_owner(tmp_path: Path) -> None:
    """A page that was for visitors and is opened for all must not show what they left behind."""
    with rig(tmp_path) as made:
        made.library.create(ADA, "Diary")
        made.add(made.library.default(BO), "Written by a job that did not know the owner.")
        shared = made.library.create(ANYBODY, "For all").name
        assert titles(made.library, ANYBODY) == ["Sample", "Your documents", "For all"]
        assert made.library.collections(Visitor(id="other")) == made.library.collections(ANYBODY)
        assert made.library.default(ANYBODY) == OWN
        made.library.delete(Visitor(id="other"), shared)
        assert shared not in made.store.collections()


def test_what_a_late_job_makes_again_is_still_its_owners(made: Rig) -> None:
    """A job indexes by name alone; the first collection's name must be enough to know whose it is."""
    own = made.library.default(ADA)
    made.add(own, "A page.")
    assert own not in names(made.library, BO)
    assert made.library.shelf(ADA, own).documents == 1
    made.library.touch(ADA, own)
    assert made.store.collection(own).owner == ADA.owner


def test_the_sample_is_read_only(made: Rig) -> None:
    for who in (ADA, OPERATOR):
        for action in (
            lambda who=who: made.library.check_writable(who, SAMPLE),
            lambda who=who: made.library.rename(who, SAMPLE, "Mine"),
            lambda who=who: made.library.delete(who, SAMPLE),
            lambda who=who: made.library.delete_document(who, SAMPLE, "0" * 16),
        ):
            assert "read-only" in refused(action)
    made.library.check_readable(ADA, SAMPLE)


def test_whoever_cannot_be_known_again_keeps_nothing(made: Rig) -> None:
    program = Visitor(id="x", owner="visitor:once", passing=True)
    made.library.check_readable(program, SAMPLE)
    assert titles(made.library, program) == ["Sample", "Your documents"]
    for action in (
        lambda: made.library.check_writable(program, made.library.default(program)),
        lambda: made.library.create(program, "Mine"),
        lambda: made.library.import_(program, Path("unused")),
    ):
        assert "cookies" in refused(action)
    assert made.store.collections() == ()


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("  Winter \t tyres\n", "Winter tyres"),
        ("evil\u202egnp.exe", "evilgnp.exe"),
        ("a\x00b\x1b[31m", "ab[31m"),
        ("Grüße 🦊 文档", "Grüße 🦊 文档"),
        ("نیم\u200cفاصله", "نیم\u200cفاصله"),
        ("<b>bold</b>", "<b>bold</b>"),
        ("x" * 80, "x" * 80),
    ],
)
def test_a_title_is_any_text_without_what_hides(made: Rig, typed: str, shown: str) -> None:
    shelf = made.library.create(ADA, typed)
    assert shelf.title == shown
    assert made.library.find(ADA, typed) == shelf.name


@pytest.mark.parametrize("typed", ["", "  \n", "\u202e\u200b", "x" * 81])
def test_a_title_that_is_none_or_too_long_is_refused(made: Rig, typed: str) -> None:
    assert "1 to 80 characters" in refused(lambda: made.library.create(ADA, typed), UsageError)
    own = made.library.create(ADA, "Mine").name
    assert "1 to 80 characters" in refused(lambda: made.library.rename(ADA, own, typed), UsageError)
    assert made.library.shelf(ADA, own).title == "Mine"


@pytest.mark.parametrize(
    "taken", ["winter tyres", "WINTER  TYRES", "Ｗinter tyres", "sample", "Your Documents"]
)
def test_a_title_is_taken_once_by_each_owner(made: Rig, taken: str) -> None:
    made.library.create(ADA, "Winter tyres")
    other = made.library.create(ADA, "Other").name
    assert "already" in refused(lambda: made.library.create(ADA, taken))
    assert "already" in refused(lambda: made.library.rename(ADA, other, taken))


def test_renaming_and_describing_keep_the_rest(made: Rig) -> None:
    shelf = made.library.create(ADA, "Tyres", "Rubber.")
    made.add(shelf.name, "Tyres are round.")
    made.library.rename(ADA, shelf.name, "TYRES")
    made.library.describe(ADA, shelf.name, "Black\u202e rubber.")
    now = made.library.shelf(ADA, shelf.name)
    assert (now.title, now.description, now.documents) == ("TYRES", "Black rubber.", 1)
    made.library.describe(ADA, shelf.name, "")
    assert made.library.shelf(ADA, shelf.name).description == ""
    assert "500" in refused(lambda: made.library.describe(ADA, shelf.name, "x" * 501), UsageError)
    own = made.library.default(ADA)
    made.library.rename(ADA, own, "Attic")
    assert titles(made.library, ADA)[1] == "Attic"


def test_deleting_leaves_nothing(made: Rig) -> None:
    shelf = made.library.create(ADA, "Tyres")
    document = made.add(shelf.name, "Tyres are round.")
    assert made.originals.path(shelf.name, document) is not None
    assert made.library.delete(ADA, shelf.name) == 1
    assert made.originals.path(shelf.name, document) is None
    assert shelf.name not in made.store.collections()
    assert "There is no collection" in refused(lambda: made.library.delete(ADA, shelf.name))
    assert made.library.delete(ADA, made.library.default(ADA)) == 0


def test_deleting_a_document_deletes_its_file(made: Rig) -> None:
    own = made.library.default(ADA)
    made.library.check_writable(ADA, own)
    document = made.add(own, "Tyres are round.")
    assert made.library.delete_document(ADA, own, document) == 1
    assert made.originals.path(own, document) is None
    assert "There is no document" in refused(lambda: made.library.delete_document(ADA, own, document))


def test_who_remembers_a_collection_is_told_when_it_is_deleted(made: Rig) -> None:
    """The bug: the search by words kept all words of a deleted collection until seven others were asked."""
    told: list[str] = []
    library = Library(store=made.store, indexer=made.indexer, settings=made.settings, deleted=told.append)
    name = library.create(ADA, "Tyres").name
    assert told == []
    library.delete(ADA, name)
    assert told == [name]


def test_uploads_under_way_go_with_their_collection(made: Rig, tmp_path: Path) -> None:
    """The bug: a queued file made the deleted collection again."""
    jobs = IngestJobs(made.indexer, tmp_path / "jobs")
    library = Library(store=made.store, indexer=made.indexer, jobs=jobs, settings=made.settings)
    try:
        name = library.create(ADA, "Tyres").name
        for number in range(5):
            upload = tmp_path / f"{number}.md"
            upload.write_text(f"Tyre number {number} is round. " * 200)
            jobs.submit(upload, upload.name, name)
        library.delete(ADA, name)
        assert jobs.jobs(name) == ()
        last = tmp_path / "last.md"
        last.write_text("This one comes after all others.")
        jobs.wait(jobs.submit(last, last.name, "elsewhere"), PATIENCE_S)
        assert name not in made.store.collections()
    finally:
        jobs.close()


class SlowToMake(ChromaStore):
    """Says when a file is about to make its collection, and lets it do so when told."""

    def __init__(self) -> None:
        super().__init__(None)
        self.reached, self.free = threading.Event(), threading.Event()
        self.before_delete: Callable[[], object] = self.free.is_set

    def ensure_collection(
        self, name: str, fingerprint: str, description: str = "", labels: Mapping[str, str] | None = None
    ) -> None:
        if not labels:
            self.reached.set()
            assert self.free.wait(PATIENCE_S)
        super().ensure_collection(name, fingerprint, description, labels or {})

    def delete_collection(self, name: str) -> int:
        self.before_delete()
        removed = super().delete_collection(name)
        self.free.set()
        return removed


def test_an_upload_that_comes_during_a_deletion_goes_with_it(tmp_path: Path) -> None:
    """The bug: it was still being copied when the others were stopped, and made the collection again."""
    store = SlowToMake()
    with rig(tmp_path, store=store, access="visitor") as made:
        jobs = IngestJobs(made.indexer, tmp_path / "jobs")
        library = Library(store=store, indexer=made.indexer, jobs=jobs, settings=made.settings)
        name = library.create(ADA, "Tyres").name
        upload = tmp_path / "late.md"
        upload.write_text("Tyres are round.")

        def arrive() -> None:
            store.before_delete = store.free.is_set
            jobs.submit(upload, upload.name, name)
            assert store.reached.wait(PATIENCE_S)

        store.before_delete = arrive
        library.delete(ADA, name)
        assert store.collections() == ()
        assert jobs.jobs(name) == ()
        jobs.close()
    store.close()


def test_there_are_only_so_many_for_each_owner(made: Rig) -> None:
    for number in range(3):
        made.library.create(ADA, f"Number {number}")
    assert "There are 3 collections already" in refused(lambda: made.library.create(ADA, "One more"))
    made.library.create(BO, "One more")


def test_many_at_once_do_not_get_past_title_or_limit(made: Rig) -> None:
    start = threading.Barrier(8)

    def create(number: int) -> str | None:
        start.wait()
        try:
            return made.library.create(ADA, f"Number {number % 4}").title
        except StoreError:
            return None

    with ThreadPoolExecutor(8) as pool:
        created = [title for title in pool.map(create, range(8)) if title]
    assert len(created) == len(set(created)) == 3
    assert sorted(created) == titles(made.library, ADA)[2:]


def test_what_visitors_do_not_use_ends(made: Rig) -> None:
    user = Visitor(id="u", owner=f"{USER}cleo")
    used, unused = made.library.create(ADA, "Used").name, made.library.create(ADA, "Unused").name
    theirs, operators = made.library.create(user, "Kept").name, made.library.create(OPERATOR, "Kept").name
    document = made.add(unused, "Nobody reads this.")
    assert made.library.shelf(ADA, unused).expires_at == "2026-03-08T12:00:00+00:00"
    assert made.library.shelf(user, theirs).expires_at is None
    made.clock.pass_(days=4)
    made.library.touch(ADA, used)
    assert made.library.expire() == []
    made.clock.pass_(days=3, hours=1)
    assert made.library.expire() == [unused]
    assert set(made.store.collections()) == {used, theirs, operators}
    assert made.originals.path(unused, document) is None
    assert made.library.shelf(ADA, used).expires_at == "2026-03-12T12:00:00+00:00"


def test_a_touch_writes_once_an_hour(made: Rig) -> None:
    name = made.library.create(ADA, "Tyres").name
    made.library.touch(ADA, name)
    first = made.store.collection(name).used_at
    made.clock.pass_(minutes=59)
    made.library.touch(ADA, name)
    assert made.store.collection(name).used_at == first
    made.clock.pass_(minutes=2)
    made.library.touch(ADA, name)
    assert made.store.collection(name).used_at == "2026-03-01T13:01:00+00:00"


def test_another_embedder_and_another_way_of_chunking_are_told(tmp_path: Path, made: Rig) -> None:
    name = made.library.create(ADA, "Tyres").name
    made.add(name, "Tyres are round. " * 60)
    with rig(tmp_path / "other", store=made.store, embedder=OtherEmbedder()) as other:
        assert other.library.shelf(ADA, name).mismatch
    with rig(tmp_path / "cut", store=made.store, tokens=16) as cut:
        shelf = cut.library.shelf(ADA, name)
        assert (shelf.mismatch, shelf.stale) == (False, 1)


def test_the_operators_files_go_where_they_say(made: Rig) -> None:
    assert made.library.place(OWN) == OWN
    assert made.library.place("lamps") == "lamps"
    assert made.library.place("lamps") == "lamps"
    assert made.library.shelf(OPERATOR, "lamps").title == "lamps"
    made.library.rename(OPERATOR, "lamps", "All lamps")
    assert made.library.place("all LAMPS") == "lamps"
    assert "read-only" in refused(lambda: made.library.place(SAMPLE))
    assert "cannot name a collection" in refused(lambda: made.library.place("no/../path"))


def test_the_housekeeper_ends_what_is_over_and_survives_a_store_that_is_away(made: Rig) -> None:
    """The bug: one failure ended the thread, and nothing was deleted from then on."""
    made.library.create(ADA, "Tyres")
    made.clock.pass_(days=8)
    swept = threading.Event()

    class Away:
        tries = 0

        def expire(self) -> list[str]:
            self.tries += 1
            if self.tries == 1:
                raise StoreUnreachable("The Chroma server does not answer.")
            if self.tries == 2:
                raise OSError("The disk does not answer.")
            gone = made.library.expire()
            swept.set()
            return gone

    keeper = Housekeeper(Away(), every_s=0.01)
    keeper.start()
    try:
        assert swept.wait(PATIENCE_S)
    finally:
        keeper.close()
    assert titles(made.library, ADA) == ["Sample", "Your documents"]


def test_exports_do_not_stay_on_the_disk(made: Rig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The bug: only the next export deleted the last, and until an hour had passed there was no end of them."""
    place = tmp_path / "temporary"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    name = made.library.create(ADA, "Tyres").name
    made.add(name, "Tyres are round.")
    shelf = made.library.shelf(ADA, name)
    paths = [exported(made.library, ADA, shelf) for _ in range(5)]
    theirs = exported(made.library, OPERATOR, shelf)
    assert [path.exists() for path in paths] == [False] * 3 + [True] * 2
    for path in (*paths[-2:], *place.iterdir()):
        os.utime(path, (0, 0))
    os.utime(theirs)  # still being written
    swept = threading.Event()

    def sweep() -> None:
        exports.sweep()
        swept.set()

    keeper = Housekeeper(made.library, sweep=sweep)
    keeper.start()
    assert swept.wait(PATIENCE_S)
    keeper.close()
    assert theirs.exists()
    assert [path.name for path in place.iterdir()] == [theirs.parent.name]
