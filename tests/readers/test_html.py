"""Web pages: the main text or all of it, in any encoding, nested to any depth."""

import subprocess
import sys
import time
from pathlib import Path

import pytest
from lxml import etree

from specrag.config import load_settings
from specrag.ingest.loaders import read
from specrag.ingest.readers.markup import flow
from specrag.ingest.sniff import _begins_as_html
from tests.readers.tools import load, marked, text_of


def test_html_without_a_main_text_gives_everything_that_is_visible(tmp_path: Path) -> None:
    page = (
        "<html><head><title>Prices</title><style>p {}</style><script>var tracking = 1</script></head>"
        "<body><p hidden>secret</p><table><tr><th>Item</th><th>Price</th></tr><tr><td>Oar</td><td>9</td></tr></table>"
        "<ul><li>One<li>Two</ul></body></html>"
    )
    document = load(tmp_path, "prices.html", page)
    assert text_of(document) == "Item | Price\nOar | 9\n\n- One\n- Two"
    assert document.title == "Prices"


def test_html_states_title_and_date(tmp_path: Path) -> None:
    story = "The ferry leaves the pier at nine and comes back before the evening tide. " * 8
    page = (
        '<html><head><title>Ferry</title><meta property="article:published_time" content="2024-03-09T08:00:00Z">'
        f"</head><body><nav><a href='/'>Home</a></nav><article><h1>The ferry</h1><p>{story}</p></article></body></html>"
    )
    document = load(tmp_path, "ferry.html", page)
    assert document.published_at == "2024-03-09"
    assert document.title in ("Ferry", "The ferry")
    assert "Home" not in text_of(document)


def test_html_in_a_declared_encoding(tmp_path: Path) -> None:
    page = '<html><head><meta charset="windows-1251"></head><body><p>Привет, мир</p></body></html>'
    document = load(tmp_path, "ru.html", page.encode("cp1251"))
    assert (text_of(document), document.encoding) == ("Привет, мир", "windows-1251")


@pytest.mark.parametrize(
    "label",
    ["undefined", "punycode", "idna", "unicode_escape", "raw-unicode-escape", "utf-7", "utf-16", "unicode", "rot13",
     "zlib", "no-such-name", "latin1.x"],
)  # fmt: skip
def test_html_in_an_encoding_that_no_page_has_is_read_as_its_bytes_say(tmp_path: Path, label: str) -> None:
    page = f'<html><head><meta charset="{label}"></head><body><p>Größe \\u0041 +AGE-</p></body></html>'
    document = load(tmp_path, "odd.html", page)
    assert (text_of(document), document.encoding) == ("Größe \\u0041 +AGE-", "utf-8")


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("iso-8859-2", "Zażółć"),
        ("windows-1251", "Привет"),
        ("koi8-r", "Привет"),
        ("koi8-u", "Привіт"),
        ("macintosh", "café"),
        ("shift_jis", "東京"),
        ("ms932", "東京"),
        ("euc-jp", "東京"),
        ("iso-2022-jp", "東京"),
        ("euc-kr", "서울"),
        ("ks_c_5601-1987", "서울"),
        ("gb2312", "北京"),
        ("gbk", "北京"),
        ("big5", "臺北"),
        ("tis-620", "กรุงเทพ"),
        ("ibm866", "Привет"),
    ],
)
def test_html_in_every_family_of_encodings_of_the_web(tmp_path: Path, label: str, text: str) -> None:
    page = f'<html><head><meta charset="{label}"></head><body><p>{text}</p></body></html>'
    document = load(tmp_path, "page.html", page.encode(label))
    assert (text_of(document), document.encoding) == (text, label)


def test_a_numbered_list_keeps_its_numbers(tmp_path: Path) -> None:
    page = "<html><ol><li>Open the lid.</li><li>Press the button.</li></ol></html>"
    assert text_of(load(tmp_path, "steps.html", page)) == "1. Open the lid.\n2. Press the button."


@pytest.mark.parametrize("end", ["x", "<!-- never closed"])
def test_many_comments_do_not_hang_the_detection_of_html(tmp_path: Path, end: str) -> None:
    """In a process of its own: a pattern that runs wild holds the interpreter and cannot be interrupted."""
    path = tmp_path / "comments"
    path.write_text("<!---->" * 40 + end, encoding="utf-8")
    program = "import sys; from specrag.ingest.sniff import identify; print(identify(open(sys.argv[1], 'rb').read(), 'a'))"
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "code"


def test_html_is_known_behind_any_number_of_comments() -> None:
    started = time.perf_counter()
    comments = "<!-- > -- <html> -->\n<!---->" * 2_500
    assert _begins_as_html(f' <?xml version="1.0"?>\n{comments} <!DOCTYPE  html>')
    assert _begins_as_html(f"{comments}<HTML lang='en'>")
    assert not _begins_as_html(f"{comments}x<html>")
    assert not _begins_as_html(f"{comments}<!-- <html>")
    assert not _begins_as_html("<htmlx>")
    assert time.perf_counter() - started < 1


def test_deeply_nested_html_does_not_crash(tmp_path: Path) -> None:
    assert "inside" in text_of(
        load(tmp_path, "deep.html", "<html>" + "<div>" * 150 + "inside" + "</div>" * 150)
    )
    deeper = text_of(load(tmp_path, "deeper.html", "<html><p>outside</p>" + "<b>" * 20_000 + "inside"))
    assert deeper == "outside\ninside"


def test_the_text_of_a_deeply_nested_page_is_not_lost(tmp_path: Path) -> None:
    page = (
        "<html><title>Deep</title><script>no()</script>" + "<div>" * 3000 + "in<b>side</b>" + "</div>" * 3000
    )
    document = load(tmp_path, "deep.html", page + "<p>after</p>")
    assert (text_of(document), document.title) == ("inside\nafter", "Deep")


@pytest.mark.parametrize("opening", ["<row><cell>", "<table><tr><td>", "<ul><li>", "<tr><td><div>"])
@pytest.mark.parametrize("times", [120, 250, 600])
def test_nested_rows_tables_and_lists_keep_their_text(tmp_path: Path, opening: str, times: int) -> None:
    text = text_of(load(tmp_path, "deep.html", f"<html><p>outside</p>{opening * times}inside"))
    assert "outside" in text
    assert "inside" in text


def test_a_tree_is_read_to_its_deepest_element_and_hidden_ones_stay_hidden() -> None:
    root = etree.Element("body")
    for opening in (("row", "cell"), ("div", "b"), ("row", "cell")):
        inner = root
        for tag in opening * 250:
            inner = etree.SubElement(inner, tag)
        inner.text = "deep"
        hidden = etree.SubElement(inner, "script")
        hidden.text, hidden.tail = "hidden", "est"
        inner.append(etree.Comment("a remark"))
        etree.SubElement(inner, "p").text = "end"
    assert flow(root).split() == ["deepest", "end"] * 3


def test_headings_of_a_page_are_where_its_text_has_them(tmp_path: Path) -> None:
    page = (
        "<html><h1>The  <i>mill</i></h1><p>Old.</p><ul><li>x</li></ul><h2>\ufdd0Wheel\ufdd1 <br>and race</h2>"
        "<p>New.</p><h3> </h3><table><tr><td>a</td></tr></table><h6>End</h6></html>"
    )
    document = load(tmp_path, "mill.html", page)
    assert marked(document) == ["The mill @ The mill", "Wheel and race @ Wheel and race", "End @ End"]
    assert "\ufdd0" not in text_of(document)


def test_merged_cells_have_their_text_once_and_keep_the_columns(tmp_path: Path) -> None:
    """Dropping empty cells put the last figure under the wrong year."""
    page = (
        "<html><table><tr><th>Town</th><th>2021</th><th>2022</th><th>2023</th></tr>"
        "<tr><td rowspan=2>Ambleton</td><td colspan='2'>closed</td><td>7</td></tr>"
        "<tr><td></td><td>5</td><td rowspan=99999999>6</td></tr></table></html>"
    )
    assert text_of(load(tmp_path, "a.html", page)) == (
        "Town | 2021 | 2022 | 2023\nAmbleton | closed | | 7\n| | 5 | 6"
    )


STORY = "".join(
    f"<p>The ferry {n} leaves the pier at nine and comes back before the evening tide, says Anna.</p>"
    for n in range(9)
)
"""Enough, and without repetition, to be taken for a main text."""


@pytest.mark.parametrize("story", ["", STORY])
def test_listings_keep_their_lines_and_code_in_a_sentence_stays_there(tmp_path: Path, story: str) -> None:
    """A listing became one line, and a sentence with a word of code three paragraphs."""
    page = (
        f"<html><body><article>{story}<p>Use <code>make\n all</code> to build it all now.</p>"
        "<pre>def f():\n    <b>return</b> 1<br>  # end\n</pre><p>Or, for example, this one line of it:</p>"
        "<pre><code>make it</code></pre><p>And that is all there is to say about it.</p></article></body></html>"
    )
    assert text_of(load(tmp_path, "a.html", page)).endswith(
        "Use make all to build it all now.\n\ndef f():\n    return 1\n  # end\n\nOr, for example, this one line of it:\n\n"
        "make it\n\nAnd that is all there is to say about it."
    )


def test_a_listing_in_a_cell_stays_in_its_row(tmp_path: Path) -> None:
    page = "<html><table><tr><td>run</td><td><pre>a\n  b\ufdd3c</pre></td></tr></table></html>"
    assert text_of(load(tmp_path, "a.html", page)) == "run | a b c"


@pytest.mark.parametrize("story", ["", STORY])
def test_what_stands_on_lines_of_its_own_is_not_glued_together(tmp_path: Path, story: str) -> None:
    page = (
        f"<html><body><article>{story}<p>First of all these.</p><details><summary>What is the price?</summary>It is five euros."
        "</details></article></body></html>"
    )
    assert text_of(load(tmp_path, "a.html", page)).split("\n")[-1] == "It is five euros."
    form = "<html><fieldset><legend>Size</legend>Small</fieldset><center>One</center>Two<dialog>Three</dialog></html>"
    assert text_of(load(tmp_path, "b.html", form)).split() == ["Size", "Small", "One", "Two", "Three"]


@pytest.mark.parametrize("story", ["", STORY])
@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("10<sup>6</sup> birds", "10^6 birds"),
        ("10<sup>-6</sup> m", "10^-6 m"),
        ("a word<sup>1</sup> more", "a word 1 more"),
        ("a word.<sup><a href='#n'>[1]</a></sup>", "a word. [1]"),
        ("5 km<sup>2</sup> and <i>x</i><sup>2</sup>", "5 km^2 and x^2"),
        ("the 1<sup>st</sup> Name<sup>®</sup>", "the 1st Name®"),
    ],
)
def test_raised_text_does_not_change_what_stands_before_it(
    tmp_path: Path, source: str, text: str, story: str
) -> None:
    """A million became 106, and a footnote's number part of a word."""
    page = f"<html><body><article>{story}<p>We counted {source}</p></article></body></html>"
    assert text_of(load(tmp_path, "a.html", page)).split("\n")[-1] == f"We counted {text}"


def test_many_notes_take_no_longer_than_others(tmp_path: Path) -> None:
    started = time.perf_counter()
    text = text_of(load(tmp_path, "a.html", "<html><p>word" + "<sup>1</sup>word" * 30_000 + "</p></html>"))
    assert text.startswith("word 1 word 1 word")
    assert time.perf_counter() - started < 30


@pytest.mark.parametrize("story", ["", STORY])
def test_merged_cells_are_followed_once(tmp_path: Path, story: str) -> None:
    """The search for the main text followed them again, and shifted what stood behind them."""
    page = (
        f"<html><body><article>{story}<table><tr><th>Town</th><th>2021</th><th>2022</th><th>2023</th></tr>"
        "<tr><td rowspan=2>Ambleton</td><td colspan='2'>closed</td><td>7</td></tr>"
        "<tr><td>4</td><td>5</td><td>6</td></tr></table></article></body></html>"
    )
    assert text_of(load(tmp_path, "a.html", page)).endswith("Ambleton | closed | | 7\n| 4 | 5 | 6")


def test_the_date_of_a_page_is_that_of_its_last_change(tmp_path: Path) -> None:
    """A page of an encyclopedia is begun decades before it says what it says."""
    page = (
        '<html><head><script type="application/ld+json">{"@type": "Article", "datePublished": "2001-11-03T00:00:00Z",'
        f' "dateModified": "2024-03-13T00:00:00Z"}}</script></head><body><article>{STORY}</article></body></html>'
    )
    assert load(tmp_path, "a.html", page).published_at == "2024-03-13"


def test_a_fact_sheet_keeps_its_lists_of_links(shared_data: Path) -> None:
    """Cells full of links were taken for navigation, and “Founders” stood there without a name."""
    path = shared_data / "docs" / "html-wikipedia-page.html"
    text = text_of(read(path, path.name, load_settings()))
    assert "Founders | Bill Gates, Paul Allen" in text
    assert "Brands | Windows, Microsoft 365, Skype" in text
    assert "Jump to navigation" not in text
    assert "Main menu" not in text
    assert "From Wikipedia, the free encyclopedia" not in text
