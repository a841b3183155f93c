"""Files as people have them: odd encodings, wrong names, broken, hostile. A document, or one clear sentence."""

import io
import json
import os
import re
import subprocess
import sys
import time
import unicodedata
import zipfile
from pathlib import Path
from typing import Any

import pytest
from lxml import etree

from specrag.config import load_settings
from specrag.errors import DocumentError
from specrag.ingest.loaders import SUFFIXES, read
from specrag.ingest.readers.markup import flow
from specrag.ingest.readers.unwrap import rejoin_hyphens, unwrap
from specrag.ingest.sniff import _begins_as_html
from specrag.ingest.text import clean_name, decode
from specrag.types import Document
from tests.made_files import docx, pdf, zipped

_KINDS = {"no_text_needs_ocr": "no_text"}


def load(tmp_path: Path, name: str, data: bytes | str, **settings: Any) -> Document:
    path = tmp_path / "upload"  # what the file is called where it lies must not matter
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read(path, name, load_settings(**settings))


def refused(tmp_path: Path, name: str, data: bytes | str, **settings: Any) -> DocumentError:
    with pytest.raises(DocumentError) as caught:
        load(tmp_path, name, data, **settings)
    message = str(caught.value)
    assert message.startswith(clean_name(name))
    assert message.endswith(".")
    assert "\n" not in message
    return caught.value


def text_of(document: Document) -> str:
    return "\n".join(page.text for page in document.pages)


def folded(text: str) -> str:
    return re.sub(r"\s+", " ", unicodedata.normalize("NFKC", text))


def test_every_awkward_file_gives_its_text_or_its_reason(shared_data: Path) -> None:
    """The real files of ../shared/data/docs, each with what must be found or refused."""
    folder = shared_data / "docs"
    problems = []
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        problem = _problem(folder / case["file"], case)
        if problem:
            problems.append(f"{case['file']}: {problem}")
    assert problems == []


def _problem(path: Path, case: dict[str, Any]) -> str | None:
    try:
        text = text_of(read(path, path.name, load_settings()))
    except DocumentError as error:
        unsupported_yet = path.suffix in (".pptx", ".epub") and error.reason == "unsupported"
        expected = _KINDS.get(case["error_kind"], case["error_kind"])
        allowed = case["outcome"] != "text" and error.reason == expected
        return (
            None if (allowed or unsupported_yet) and path.name in str(error) else f"{error.reason}: {error}"
        )
    if case["outcome"] in ("error", "no_text"):
        return "was read although it must be refused"
    missing = [phrase for phrase in case["must_contain"] if folded(phrase) not in folded(text)]
    return f"missing {missing}" if missing or any(word in text for word in case["must_not_contain"]) else None


def test_an_encrypted_pdf_opens_with_its_password(shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-encrypted-user-password.pdf"
    assert "Lorem ipsum" in text_of(read(path, path.name, load_settings(), password="openpassword"))
    with pytest.raises(DocumentError, match="the password does not open it"):
        read(path, path.name, load_settings(), password="wrong")


def test_an_encrypted_file_does_not_colour_the_next_one(shared_data: Path, tmp_path: Path) -> None:
    """An error code of pdfium stays behind: a PDF without pages was called encrypted."""
    path = shared_data / "docs" / "pdf-encrypted-user-password.pdf"
    with pytest.raises(DocumentError, match="protected by a password"):
        read(path, path.name, load_settings())
    assert refused(tmp_path, "no pages.pdf", pdf()).reason == "no_pages"
    assert refused(tmp_path, "cut.pdf", pdf("Hello there.")[:120]).reason == "corrupt"


def test_filled_form_fields_are_text(shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-form-filled.pdf"
    text = text_of(read(path, path.name, load_settings()))
    assert "Alice" in text
    assert "Bob" in text


def test_words_cut_at_line_ends_are_whole_and_paragraphs_are_unwrapped(shared_data: Path) -> None:
    path = shared_data / "docs" / "pdf-two-column-latex.pdf"
    text = text_of(read(path, path.name, load_settings()))
    assert "consectetuer id, vulputate a, magna." in text
    assert "sit amet, consectetuer adipiscing elit. Ut purus elit, vestibulum ut, placerat ac" in text
    assert "dignissim rutrum.\n\nNam dui ligula" in text


def test_a_hyphen_that_the_document_writes_elsewhere_stays() -> None:
    pages = [
        "a state-of-the-art way",
        "self-contained text, and self\ufffecontained text, and consec\ufffetetuer",
    ]
    assert (
        unwrap(rejoin_hyphens(pages)[1]) == "self-contained text, and self-contained text, and consectetuer"
    )


def test_rows_of_a_table_stay_rows() -> None:
    rows = "Name Age City\r\nAnna 30 Berlin\r\nBen 25 Rome"
    assert unwrap(rows).splitlines() == ["Name Age City", "Anna 30 Berlin", "Ben 25 Rome"]


def test_lines_of_scripts_without_blanks_join_without_one() -> None:
    assert unwrap("東京は日本の首都であり世界で最も人口の多い都\r\n市圏の一つでありとても大きい") == (
        "東京は日本の首都であり世界で最も人口の多い都市圏の一つでありとても大きい"
    )


def test_pages_keep_their_numbers_also_when_one_has_no_text(tmp_path: Path) -> None:
    """One scanned page in a readable file must not vanish silently."""
    document = load(tmp_path, "mixed.pdf", pdf("The first page.", "", "The third page."))
    assert [(page.number, page.text) for page in document.pages] == [
        (1, "The first page."),
        (2, ""),
        (3, "The third page."),
    ]


@pytest.mark.parametrize(
    ("name", "data", "reason", "says"),
    [
        ("empty.pdf", b"", "empty_file", "0 bytes"),
        ("scan.pdf", pdf("", ""), "no_text", "OCR"),
        ("no pages.pdf", pdf(), "no_pages", "without a single page"),
        ("cut.pdf", pdf("Hello there.")[:120], "corrupt", "damaged"),
        ("invoice.pdf", b"MZ\x90\0\x03\0\0\0" + bytes(200), "type_mismatch", "a Windows program"),
        ("notes.txt", b"\x7fELF\x02\x01\x01" + bytes(200), "type_mismatch", "a Linux program"),
        ("tool.exe", b"MZ\x90\0\x03\0\0\0" + bytes(200), "unsupported", "a Windows program"),
        ("photo.png", b"\x89PNG\r\n\x1a\n" + bytes(90), "unsupported", "Portable Network Graphics"),
        ("photo.docx", b"\x89PNG\r\n\x1a\n" + bytes(90), "type_mismatch", "called .docx"),
        ("blob", bytes(range(256)) * 8, "unsupported", "no text"),
        ("table.xlsx", zipped({"xl/workbook.xml": "<x/>"}), "unsupported", "an Excel workbook"),
        ("table.docx", zipped({"xl/workbook.xml": "<x/>"}), "type_mismatch", "an Excel workbook"),
        ("slides.pptx", zipped({"ppt/presentation.xml": "<x/>"}), "unsupported", "a PowerPoint presentation"),
        ("book.epub", zipped({"META-INF/container.xml": "<x/>"}), "unsupported", "an EPUB book"),
        ("files.zip", zipped({"a.txt": "a"}), "unsupported", "a ZIP archive"),
        ("half.docx", docx("<w:p/>")[:200], "corrupt", "ZIP container"),
        ("hollow.docx", zipped({"word/document.xml": "no xml"}), "corrupt", "no complete Word document"),
        ("blank.docx", docx("<w:p/>"), "no_text", "no text to index"),
        ("secret.docx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "EncryptedPackage".encode("utf-16-le"), "encrypted", "password"),
        ("old.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "unsupported", "Office 97-2003"),
        ("letter.rtf", rb"{\rtf1\ansi Hello}", "unsupported", "an RTF document"),
        ("renamed.pdf", b"Only plain text in here.", "type_mismatch", "plain text"),
        ("blank.txt", b" \n\t\n ", "no_text", "no text to index"),
        ("empty.html", b"<html><script>alert(1)</script></html>", "no_text", "no text to index"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(tmp_path: Path, name: str, data: bytes, reason: str, says: str) -> None:
    error = refused(tmp_path, name, data)
    assert (error.reason, says in str(error)) == (reason, True), str(error)


def test_the_supported_types_are_named_in_a_refusal(tmp_path: Path) -> None:
    assert "PDF, DOCX, HTML, Markdown and plain text" in str(
        refused(tmp_path, "a.png", b"\x89PNG\r\n\x1a\n" + bytes(90))
    )
    assert set(SUFFIXES) >= {".pdf", ".docx", ".html", ".md", ".txt"}


def test_a_file_above_the_limit_is_refused_without_being_read(tmp_path: Path) -> None:
    path = tmp_path / "huge"
    path.touch()
    os.truncate(path, 40_000_000_000)  # sparse: takes no disk, but reading it would take all memory
    with pytest.raises(DocumentError, match=r"40000\.0 MB.*SPECRAG_MAX_FILE_MB") as caught:
        read(path, "huge.txt", load_settings(max_file_mb=1))
    assert caught.value.reason == "too_large"


def test_too_many_pages_or_characters_are_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "long.pdf", pdf("a", "b", "c"), max_pages=2).reason == "too_large"
    assert refused(tmp_path, "long.txt", "word " * 400, max_characters=1000).reason == "too_large"
    assert refused(tmp_path, "dense.pdf", pdf("word " * 400), max_characters=1000).reason == "too_large"


def test_a_docx_bomb_is_refused_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = docx("<w:p/>" + " " * 5_000_000)
    assert len(bomb) < 50_000
    assert refused(tmp_path, "bomb.docx", bomb, max_file_mb=1).reason == "too_large"


@pytest.mark.parametrize("member", ["word/document.dat", "word/media/text.png"])
def test_a_docx_bomb_is_refused_whatever_its_main_part_is_called(tmp_path: Path, member: str) -> None:
    with zipfile.ZipFile(io.BytesIO(docx("<w:p/>" + " " * 5_000_000))) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    parts[member] = parts.pop("word/document.xml")
    bomb = zipped({name: text.replace("word/document.xml", member) for name, text in parts.items()})
    assert len(bomb) < 50_000
    assert refused(tmp_path, "bomb.docx", bomb, max_file_mb=1).reason == "too_large"


def test_pictures_do_not_count_as_text_of_a_docx(tmp_path: Path) -> None:
    buffer = io.BytesIO(docx("<w:p><w:r><w:t>Read me.</w:t></w:r></w:p>"))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image1.bmp", b"BM" + bytes(5_000_000))
    assert text_of(load(tmp_path, "letter.docx", buffer.getvalue(), max_file_mb=1)) == "Read me."


def test_a_missing_file_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file"):
        read(tmp_path / "gone", "gone.txt", load_settings())


def test_content_decides_before_the_extension(tmp_path: Path) -> None:
    paragraph = "<w:p><w:r><w:t>Read me.</w:t></w:r></w:p>"
    assert text_of(load(tmp_path, "letter.doc", docx(paragraph))) == "Read me."
    assert text_of(load(tmp_path, "page.pdf", "<!doctype html><p>An error page.</p>")) == "An error page."
    assert text_of(load(tmp_path, "noextension", pdf("A page."))) == "A page."


def test_the_same_bytes_are_the_same_document_under_any_name(tmp_path: Path) -> None:
    one, other = load(tmp_path, "a.txt", "Same."), load(tmp_path, "b.md", "Same.")
    assert one.id == other.id
    assert re.fullmatch(r"[0-9a-f]{16}", one.id)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\Users\\me\\report.pdf", "report.pdf"),
        ("invoice\u202efdp.exe", "invoicefdp.exe"),
        ("a\0b\n\r\tc.txt", "abc.txt"),
        ("..", "unnamed"),
        ("", "unnamed"),
        ("\udcff.txt", "\ufffd.txt"),
        ("<script>alert(1)</script>.md", "script>.md"),
        ("名前.pdf", "名前.pdf"),
    ],
)
def test_names_are_shown_without_tricks(name: str, shown: str) -> None:
    assert clean_name(name) == shown


def test_a_very_long_name_keeps_its_extension() -> None:
    shown = clean_name("x" * 400 + ".pdf")
    assert len(shown) == 255
    assert shown.endswith(".pdf")


def test_a_docx_keeps_table_rows_lists_and_headings(tmp_path: Path) -> None:
    def cell(text: str) -> str:
        return f"<w:tc>{paragraph(text)}</w:tc>"

    def paragraph(text: str, style: str = "") -> str:
        properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
        return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"

    rows = "".join(f"<w:tr>{cell(a)}{cell(b)}</w:tr>" for a, b in (("Part", "Price"), ("Wheel", "12")))
    document = load(tmp_path, "parts.docx", docx(paragraph("Parts", "Heading1") + f"<w:tbl>{rows}</w:tbl>"))
    assert text_of(document) == "Parts\n\nPart | Price\nWheel | 12"
    assert document.title == "Parts"


def test_a_docx_keeps_its_footnotes(shared_data: Path) -> None:
    path = shared_data / "docs" / "docx-footnotes.docx"
    assert folded(text_of(read(path, path.name, load_settings()))).endswith(
        "A tachyon walks into a bar. Fin."
    )


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


def test_hostile_texts_take_no_longer_than_others(tmp_path: Path) -> None:
    """Each of these took time in the square of its length with a careless pattern."""
    started = time.perf_counter()
    endless = "a" * 300_000
    assert unwrap(rejoin_hyphens([f"{endless}\ufffe{endless}"])[0]) == endless * 2
    load(tmp_path, "blanks.md", "# " + " " * 300_000 + "x\n" + "```\n~~~\n" * 5000)
    load(tmp_path, "list.html", "<html><ol>" + "<li>item</li>" * 20_000 + "</ol>")
    load(tmp_path, "dots.txt", "." * 300_000 + "\n" + "-\n" * 50_000)
    assert time.perf_counter() - started < 30


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


def test_markdown_front_matter_gives_title_and_date_and_is_no_text(tmp_path: Path) -> None:
    document = load(tmp_path, "a.md", '---\ntitle: "The mill"\ndate: 2023-05-06\n---\n# Other\n\n    code\n')
    assert (document.title, document.published_at) == ("The mill", "2023-05-06")
    assert text_of(document) == "# Other\n\n    code"


def test_markdown_title_is_its_first_heading_and_not_a_comment_in_code(tmp_path: Path) -> None:
    document = load(tmp_path, "a.md", "```sh\n# install\n```\n\n# Handbook #\n\nText.\n")
    assert document.title == "Handbook"


def test_code_and_data_are_text_with_their_indentation(tmp_path: Path) -> None:
    assert text_of(load(tmp_path, "a.py", "def f():\n    return 1\n")) == "def f():\n    return 1"
    assert text_of(load(tmp_path, "a.json", '{\n  "a": 1\n}')) == '{\n  "a": 1\n}'
    assert text_of(load(tmp_path, "a.csv", "a,b\n1,2\n")) == "a,b\n1,2"


def test_plain_text_is_tidy_but_keeps_paragraphs(tmp_path: Path) -> None:
    document = load(
        tmp_path, "My notes.txt", "One   two\t three\r\n\r\n\r\n\r\nFour\r\nfive\0\u00ad six e\u0301"
    )
    assert text_of(document) == "One two three\n\nFour\nfive six é"
    assert (document.title, document.source, document.encoding) == ("My notes", "My notes.txt", "utf-8")


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        ("Hello, here is plain text", "utf-16", "utf-16-le"),
        ("Hello, here is plain text", "utf-16-be", "utf-16-be"),
        ("naïve café", "utf-8-sig", "utf-8"),
        ("今天天气很好。我们去公园散步。北京是中国的首都。", "gb2312", "gb18030"),
        ("Привет, мир. Сегодня хорошая погода, и мы идём гулять в парк.", "cp1251", "cp1251"),
        (
            "L'été était très chaud. J'ai acheté un café au lait pour 3,50 €. Où est la forêt ?",
            "cp1252",
            "cp1252",
        ),
    ],
)
def test_encodings_are_found_and_reported(text: str, codec: str, encoding: str) -> None:
    assert decode(text.encode(codec)) == (text, encoding)


def test_utf8_cut_inside_a_character_is_still_utf8() -> None:
    """Statistics would read the whole file as something else for its last byte."""
    data = ("Größe und Straße, Übung und Äpfel, " * 20).encode()[:-2] + "ß".encode()[:1]
    decoded = decode(data)
    assert decoded is not None
    assert decoded[1] == "utf-8"
    assert decoded[0].startswith("Größe")


def test_control_characters_and_lone_surrogates_never_reach_the_store(tmp_path: Path) -> None:
    text = text_of(load(tmp_path, "a.txt", b"ok \x1b[31m red \x07 \xef\xbb\xbf end"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ufeff\ud800-\udfff]", text)
