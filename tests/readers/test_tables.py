"""Rows of spreadsheets and delimited text: every line says what it means when it is cut out."""

import datetime as dt
import io
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from specrag.ingest.readers.tables import lines
from tests.made_files import core, ods, with_member, xlsx
from tests.readers.tools import load, refused, text_of


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "Item,Price\nOar,9\nRope,12\n"),
        ("a.csv", "Item;Price\r\nOar;9\r\nRope;12\r\n"),
        ("a.csv", "sep=|\nItem|Price\nOar|9\nRope|12"),
        ("a.tsv", "Item\tPrice\nOar\t9\nRope\t12\n"),
        ("a.csv", '"Item","Price"\n"Oar",9\n"Rope","12"\n'),
        ("a.csv", "\n\nItem,Price,\nOar,9,\n,,\nRope,12,\n"),
    ],
)
def test_rows_below_a_header_are_records_whatever_stands_between_cells(
    tmp_path: Path, name: str, text: str
) -> None:
    document = load(tmp_path, name, text)
    assert text_of(document) == "Item: Oar; Price: 9\nItem: Rope; Price: 12"
    assert document.media_type == "text/csv"


def test_decimal_commas_do_not_hide_the_semicolons(tmp_path: Path) -> None:
    text = "Ort;Preis;Menge\nUlm;1,50;2,5\nBonn;2,75;3,5\n"
    assert text_of(load(tmp_path, "a.csv", text)).splitlines()[0] == "Ort: Ulm; Preis: 1,50; Menge: 2,5"


def test_cells_with_line_breaks_and_quotes_stay_one_cell(tmp_path: Path) -> None:
    text = 'Name,Said\nAnna,"He said ""no"",\nand left"\nBen,hm\n'
    assert text_of(load(tmp_path, "a.csv", text)) == 'Name | Said\nAnna | He said "no", and left\nBen | hm'


def test_a_quote_that_is_never_closed_does_not_swallow_the_rows(tmp_path: Path) -> None:
    text = 'Size,Item\n"12,pipe\n' + "5,rod\n" * 50
    assert text_of(load(tmp_path, "a.csv", text)).count("Size: 5; Item: rod") == 50


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([["1", "2"], ["3", "4"]], ["1 | 2", "3 | 4"]),
        ([["Report"], ["", "Q1", "Q2"], ["North", "5", "6"]], ["Report", "North; Q1: 5; Q2: 6"]),
        ([["A", "A"], ["1", "2"]], ["A | A", "1 | 2"]),
        ([["Name", "City"]], ["Name | City"]),
        ([["just", ""], ["lines", ""]], ["just", "lines"]),
        ([["A", "B"], ["1", ""]], ["A | B", "A: 1"]),
        ([["A", "B"], ["1", "2", "3"], ["A", "B"]], ["A: 1; B: 2; 3", "A | B"]),
        ([["He came.", "She went."], ["x", "y"]], ["He came. | She went.", "x | y"]),
        ([["name", "home"], ["Anna", "Rome"]], ["name: Anna; home: Rome"]),
        ([["", "Food", "Beds"], ["Inn", "good", "hard"]], ["Inn; Food: good; Beds: hard"]),
        ([["Who", "Paid", "Job"], ["Anna", "yes", "Cook"]], ["Who: Anna; Paid: yes; Job: Cook"]),
        ([["Who", "Born"], ["Anna", "3 May 1990"], ["Bob", "n/a"]], ["Who: Anna; Born: 3 May 1990", "Who: Bob; Born: n/a"]),
        ([["Item", "Price"], ["Oar", "9 EUR"], ["Rope", "$ 12"]], ["Item: Oar; Price: 9 EUR", "Item: Rope; Price: $ 12"]),
        ([["Who", "Job"], ["Anna", "Cook"], ["Who", "Job"]], ["Who: Anna; Job: Cook", "Who | Job"]),
    ],
)  # fmt: skip
def test_a_header_is_recognised_by_what_it_looks_like(rows: list[list[str]], expected: list[str]) -> None:
    assert list(lines(rows)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Anna,Rome,Keeper\nBob,Paris,Cook\nEve,Bonn,Cook",
        "Project,Bridge North\nOwner,Anna Smith\nBudget,12000\nStart,2024-01-01\nState,open",
        "Project,Bridge North\nBudget,12000\nStart,2024-01-01",
        "Project:,Bridge\nBudget:,12000",
        "Anna,12 Main Street\nBob,3 Mill Lane",
    ],
)
def test_texts_that_name_no_columns_stay_rows(tmp_path: Path, text: str) -> None:
    """The first person of a list, or the first key of a cover sheet, named the columns of all others."""
    assert text_of(load(tmp_path, "a.csv", text)) == text.replace(",", " | ")


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (
            [["Item", "Price"], ["Oar", "9"], [], ["Bird", "Eggs"], ["Heron", "4"]],
            ["Item: Oar; Price: 9", "Bird: Heron; Eggs: 4"],
        ),
        (
            [["Item", "Price"], ["Oar", "9"], ["", ""], ["Owner", "Anna", "Rome"], ["Cook", "Bob", "Bonn"]],
            ["Item: Oar; Price: 9", "Owner | Anna | Rome", "Cook | Bob | Bonn"],
        ),
        (
            [["Who", "Age"], [], ["Anna", "30"], ["Bob", "40"], [], ["Eve", "50"], ["Notes"]],
            ["Who: Anna; Age: 30", "Who: Bob; Age: 40", "Who: Eve; Age: 50", "Who: Notes"],
        ),
        ([["Prices"], [], ["Item", "Cost"], [], ["Oar", "9"]], ["Prices", "Item: Oar; Cost: 9"]),
        ([["Item", "Cost"], ["Oar", "9"], [], ["All with tax."]], ["Item: Oar; Cost: 9", "All with tax."]),
        ([["Owner", "Anna"], [], ["Item", "Cost"], ["Oar", "9"]], ["Owner | Anna", "Item: Oar; Cost: 9"]),
        ([["Owner", "Anna"], [], ["Cook", "Bob"]], ["Owner | Anna", "Cook | Bob"]),
        ([["Owner", "Anna"]], ["Owner | Anna"]),
    ],
)
def test_an_empty_row_ends_a_table_unless_the_next_rows_belong_to_it(
    rows: list[list[str]], expected: list[str]
) -> None:
    """A second table had the header of the first: `Item: Bird; Price: Eggs`."""
    assert list(lines(rows)) == expected


def test_a_hundred_thousand_rows_are_read_in_seconds(tmp_path: Path) -> None:
    """Rows beside one another where the header's names would fill the limit of characters."""
    header = ",".join(f"A rather long name of column {number}" for number in range(12))
    rows = "\n".join(",".join(str(row * number) for number in range(12)) for row in range(100_000))
    tracemalloc.start()
    started = time.perf_counter()
    text = text_of(load(tmp_path, "long.csv", f"{header}\n{rows}"))
    took, (_, peak) = time.perf_counter() - started, tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert text.startswith("A rather long name of column 0 | ")
    assert "99999 | 199998 | 299997" in text
    assert took < 60  # with tracing, which makes it several times slower
    assert peak < 20 * len(text)


def test_sheets_are_pages_with_their_names(tmp_path: Path) -> None:
    book = xlsx({
        "Prices": [["Item", "Price", "Since", "Sold"], ["Oar", 9.5, dt.date(2024, 5, 6), True], ["Rope", 0.1 + 0.2]],
        "Empty": [],
        "Notes": [["Ask\nAnna"], [1234567890123]],
    })  # fmt: skip
    stated = core(title="Price list", modified="2024-06-07T00:00:00Z")
    document = load(tmp_path, "prices.xlsx", with_member(book, "docProps/core.xml", stated))
    assert [(page.section, page.number, page.text) for page in document.pages] == [
        ("Prices", None, "Item: Oar; Price: 9.5; Since: 2024-05-06; Sold: TRUE\nItem: Rope; Price: 0.3"),
        ("Notes", None, "Ask Anna\n1234567890123"),
    ]
    assert (document.title, document.published_at) == ("Price list", "2024-06-07")


def test_a_cell_that_is_merged_over_rows_is_in_each_of_them(tmp_path: Path) -> None:
    """“Bonn; Sold: 6” did not say of which area."""
    book = xlsx({
        "A": [[], [None, "Area", "Town", "Sold"], [None, "North", "Ulm", 5], [None, None, "Bonn", 6], [], [None, None, "Kiel", 8], [None, "South", "Rome", 7]]
    })  # fmt: skip
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").decode()
    merged = sheet.replace("</sheetData>", '</sheetData><mergeCells><mergeCell ref="B3:B6"/></mergeCells>')
    text = text_of(load(tmp_path, "a.xlsx", with_member(book, "xl/worksheets/sheet1.xml", merged)))
    assert text.splitlines() == [
        f"Area: {area}; Town: {town}; Sold: {sold}"
        for area, town, sold in (
            ("North", "Ulm", 5),
            ("North", "Bonn", 6),
            ("North", "Kiel", 8),
            ("South", "Rome", 7),
        )
    ]


def test_a_duration_is_in_hours(tmp_path: Path) -> None:
    book = xlsx({"A": [["Run", "Took"], ["one", dt.timedelta(hours=30)], ["two", dt.timedelta(minutes=5)]]})
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        styles = archive.read("xl/styles.xml").replace(b"yyyy-mm-dd", b"[h]:mm:ss")
    timed = with_member(book, "xl/styles.xml", styles)
    assert text_of(load(tmp_path, "a.xlsx", timed)) == "Run: one; Took: 30:00:00\nRun: two; Took: 0:05:00"


def test_a_spreadsheet_of_libreoffice_is_read(tmp_path: Path) -> None:
    document = load(tmp_path, "birds.ods", ods([["Bird", "Eggs"], ["Heron", "4"]]))
    assert [(page.section, page.text) for page in document.pages] == [("Birds", "Bird: Heron; Eggs: 4")]


def test_limits_of_sheets_and_characters_are_kept(tmp_path: Path) -> None:
    book = xlsx({"A": [["one", "two"]], "B": [["three", "four"]], "C": [["x" * 900, "y" * 900]]})
    assert "3 sheets" in str(refused(tmp_path, "a.xlsx", book, max_pages=2))
    assert refused(tmp_path, "a.xlsx", book, max_characters=1000).reason == "too_large"
    assert refused(tmp_path, "a.csv", "a,b\n" * 1000, max_characters=1000).reason == "too_large"


def test_a_stray_cell_in_the_last_corner_does_not_take_all_memory(tmp_path: Path) -> None:
    """The grid between the two cells would have been 17 billion cells; the process died."""
    book = xlsx({"A": [["here"]]})
    sheet = (
        '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'
        '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"{}</row></sheetData></worksheet>'
    )
    stray = with_member(book, "xl/worksheets/sheet1.xml", sheet.format("><v>2</v></c>"))
    assert refused(tmp_path, "stray.xlsx", stray).reason == "too_large"
    styled = with_member(book, "xl/worksheets/sheet1.xml", sheet.format(' s="1"/>'))
    assert text_of(load(tmp_path, "styled.xlsx", styled)) == "1"


def test_a_sheet_that_is_cut_off_ends_in_a_sentence(tmp_path: Path) -> None:
    """The library behind it waited for the end of the sheet for ever."""
    book = ods([["Bird", "Eggs"], ["Heron", "4"]])
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        content = archive.read("content.xml")
    cut = with_member(book, "content.xml", content[: len(content) * 2 // 3])
    assert refused(tmp_path, "cut.ods", cut).reason == "corrupt"


def test_repeated_cells_do_not_take_all_memory(tmp_path: Path) -> None:
    """A sheet of a few bytes may ask for thousands of columns in thousands of rows."""
    book = ods([["Bird", "Eggs"], ["Heron", "4"]])
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        content = archive.read("content.xml")
    cell, row = b"<table:table-cell ", b"<table:table-row>"
    wide = content.replace(cell, cell + b'table:number-columns-repeated="9000" ')
    both = wide.replace(row, b'<table:table-row table:number-rows-repeated="9000">')
    assert refused(tmp_path, "both.ods", with_member(book, "content.xml", both)).reason == "too_large"
    spare = b'<table:table-cell table:number-columns-repeated="16384"/></table:table-row>'
    empty = content.replace(b"</table:table-row>", spare)
    assert text_of(load(tmp_path, "a.ods", with_member(book, "content.xml", empty))) == "Bird: Heron; Eggs: 4"


def test_a_row_number_beyond_all_rows_is_refused(tmp_path: Path) -> None:
    """A billion empty rows were walked through."""
    book = xlsx({"A": [["x", 1]]})
    with zipfile.ZipFile(io.BytesIO(book)) as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml").replace(b'"B1"', b'"B999999999"')
    far = with_member(book, "xl/worksheets/sheet1.xml", sheet)
    assert refused(tmp_path, "far.xlsx", far).reason == "too_large"
