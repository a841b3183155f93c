"""Books: chapters in the order of the spine, under the names of the table of contents."""

from pathlib import Path

from tests.made_files import epub, with_member
from tests.readers.tools import load, refused, text_of


def test_chapters_are_pages_under_the_names_of_the_contents(tmp_path: Path) -> None:
    contents = '<ol><li><a href="c0.xhtml">How it began</a></li><li><a href="c0.xhtml#x">Later</a></li></ol>'
    book = epub(("One", "In spring."), ("Two", "In fall."), title="A year", date="2019-08", contents=contents)
    document = load(tmp_path, "year.epub", book)
    assert [(page.number, page.section, page.text) for page in document.pages] == [
        (None, "How it began", "One\n\nIn spring."),
        (None, "Two", "Two\n\nIn fall."),
    ]
    assert (document.title, document.published_at) == ("A year", "2019-08-01")
    assert document.media_type == "application/epub+zip"


def test_a_book_without_a_spine_has_no_chapters(tmp_path: Path) -> None:
    assert refused(tmp_path, "a.epub", epub(("One", "x"), spine=False)).reason == "no_pages"


def test_a_chapter_outside_the_book_is_not_looked_for(tmp_path: Path) -> None:
    book = epub(("One", "Inside."))
    package = (
        '<package><metadata/><manifest><item id="a" href="../../../../etc/passwd" media-type="text/html"/>'
        '<item id="b" href="http://example.org/x.html" media-type="text/html"/>'
        '<item id="c" href="%63%30.xhtml" media-type="application/xhtml+xml"/></manifest>'
        '<spine><itemref idref="a"/><itemref idref="b"/><itemref idref="c"/><itemref idref="c"/></spine></package>'
    )
    assert (
        text_of(load(tmp_path, "a.epub", with_member(book, "EPUB/content.opf", package))) == "One\n\nInside."
    )


def test_a_locked_book_is_said_to_be_locked_and_locked_fonts_do_not_matter(tmp_path: Path) -> None:
    lock = (
        '<encryption xmlns:e="http://www.w3.org/2001/04/xmlenc#"><e:EncryptedData><e:CipherData>'
        '<e:CipherReference URI="{}"/></e:CipherData></e:EncryptedData></encryption>'
    )
    book = epub(("One", "Open."))
    locked = with_member(book, "META-INF/encryption.xml", lock.format("EPUB/c0.xhtml"))
    assert refused(tmp_path, "a.epub", locked).reason == "encrypted"
    fonts = with_member(book, "META-INF/encryption.xml", lock.format("EPUB/font.otf"))
    assert text_of(load(tmp_path, "a.epub", fonts)) == "One\n\nOpen."


def test_too_many_chapters_are_refused(tmp_path: Path) -> None:
    book = epub(*[("Chapter", "x")] * 3)
    assert "3 chapters" in str(refused(tmp_path, "a.epub", book, max_pages=2))
