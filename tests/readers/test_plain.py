"""Plain text and code in any encoding."""

import re
import time
from pathlib import Path

import pytest

from specrag.ingest.readers.unwrap import rejoin_hyphens, unwrap
from specrag.ingest.text import decode
from tests.readers.tools import load, text_of


def test_hostile_texts_take_no_longer_than_others(tmp_path: Path) -> None:
    """Each of these took time in the square of its length with a careless pattern."""
    started = time.perf_counter()
    endless = "a" * 300_000
    assert unwrap(rejoin_hyphens([f"{endless}\ufffe{endless}"])[0]) == endless * 2
    load(tmp_path, "blanks.md", "# " + " " * 300_000 + "x\n" + "```\n~~~\n" * 5000)
    load(tmp_path, "list.html", "<html><ol>" + "<li>item</li>" * 20_000 + "</ol>")
    load(tmp_path, "dots.txt", "." * 300_000 + "\n" + "-\n" * 50_000)
    assert time.perf_counter() - started < 30


def test_code_and_data_are_text_with_their_indentation(tmp_path: Path) -> None:
    assert text_of(load(tmp_path, "a.py", "def f():\n    return 1\n")) == "def f():\n    return 1"
    assert text_of(load(tmp_path, "Makefile", "all:\n\techo 1\n")) == "all:\n\techo 1"


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


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("Größe, Übung und Äpfel".encode() + b" caf\xe9 it\x92s.", "Größe, Übung und Äpfel café it’s."),
        ("A café".encode() + b" that isn\x92t here", "A café that isn’t here"),
        ("A café".encode() + b" \x93that isn\x92t here\x94.", "A café “that isn’t here”."),
        ("名古屋の天気は晴れです。".encode()[:-1] + "名古屋".encode(), "名古屋の天気は晴れです\ufffd名古屋"),
        ("Привет, мир.".encode() + b" \x93Hi\x94", "Привет, мир. “Hi”"),
        ("Größe und Straße".encode() + b"\xc3", "Größe und Straße\ufffd"),
    ],
)
def test_a_few_stray_bytes_do_not_garble_the_rest(data: bytes, text: str) -> None:
    """Statistics took all of it for another encoding: `cafÃ©`."""
    assert decode(data) == (text, "utf-8")


@pytest.mark.parametrize(
    ("text", "codec"),
    [("Die Straß» ist „groß“ – ja", "cp1252"), ("Škoda, žluťoučký kůň úpěl ďábelské ódy", "cp1250")],
)
def test_what_is_not_utf8_is_not_taken_for_broken_utf8(text: str, codec: str) -> None:
    assert decode(text.encode(codec)) == (text, codec)


def test_control_characters_and_lone_surrogates_never_reach_the_store(tmp_path: Path) -> None:
    text = text_of(load(tmp_path, "a.txt", b"ok \x1b[31m red \x07 \xef\xbb\xbf end"))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\ufeff\ud800-\udfff]", text)


def test_the_colours_of_a_terminal_are_no_text(tmp_path: Path) -> None:
    log = "\x1b]0;title\x07\x1b[1;31mERROR\x1b[0m \x1b[?25lnone\x1b[K left [0m]"
    assert text_of(load(tmp_path, "a.log", log)) == "ERROR none left [0m]"


@pytest.mark.parametrize("codec", ["cp932", "gb18030", "euc_jp", "utf-16"])
@pytest.mark.parametrize("pad", range(2))
def test_a_long_file_is_text_wherever_its_beginning_is_cut(tmp_path: Path, codec: str, pad: int) -> None:
    """The type is told by the first bytes; half a character at their end made Japanese text “no text”."""
    text = "a" * pad + "名古屋の天気は晴れです。\n" * 4000
    for data in (text.encode(codec), text.replace("\n", "").encode(codec), text.encode(codec)[:-2]):
        assert text_of(load(tmp_path, "a.txt", data))[pad : pad + 4] == "名古屋の"


@pytest.mark.parametrize(
    ("text", "codec"),
    [
        ("名前,年齢,住所\r\n佐藤太郎,30,東京\r\n髙橋淳,35,名古屋\r\n", "cp932"),
        ("氏名：山田\n電話：０３\n", "cp932"),
        ("東京タワーは港区にあります。", "euc_jp"),
        ("이름,나이\n김철수,30\n", "cp949"),
        ("姓名,年龄\n王小明,30\n北京市海淀区\n", "gb18030"),
        ("имя;возраст\nИван;30\nМосква;5\n", "cp1251"),
        ("Größe;Maß\nTür;9 €\n", "cp1252"),
    ],
)
def test_short_files_in_old_encodings_are_not_garbled(tmp_path: Path, text: str, codec: str) -> None:
    document = load(tmp_path, "short.txt", text.encode(codec))
    assert text_of(document).split() == text.split()
