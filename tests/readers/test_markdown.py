"""Markdown: as written, with title, date and headings, and HTML in it as text."""

from pathlib import Path

from tests.readers.tools import load, marked, text_of


def test_markdown_front_matter_gives_title_and_date_and_is_no_text(tmp_path: Path) -> None:
    document = load(tmp_path, "a.md", '---\ntitle: "The mill"\ndate: 2023-05-06\n---\n# Other\n\n    code\n')
    assert (document.title, document.published_at) == ("The mill", "2023-05-06")
    assert text_of(document) == "# Other\n\n    code"


def test_markdown_title_is_its_first_heading_and_not_a_comment_in_code(tmp_path: Path) -> None:
    document = load(tmp_path, "a.md", "```sh\n# install\n```\n\n# Handbook #\n\nText.\n")
    assert document.title == "Handbook"


def test_headings_are_found_outside_fences_only(tmp_path: Path) -> None:
    text = (
        "# One #\n\nUnder\nlined\n===\n\n```sh\n# no\n~~~\n## no\n```\n\n  ### Th*re*e `x` [link](http://a)\n"
        "\n- item\n---\n\n#no\n\nTwo\n---\n\n~~~~\n# no\n~~~\n# no\n"
    )
    assert marked(load(tmp_path, "a.md", text)) == [
        "One @ # One #",
        "lined @ lined",
        "Three x link @   ### Th*re*e `x` [link](http://a)",
        "Two @ Two",
    ]


def test_a_comment_in_a_listing_of_html_is_no_heading(tmp_path: Path) -> None:
    document = load(tmp_path, "a.md", "# One\n\n<pre>\n# no\n\n  make\n</pre>\n\n## Two\n")
    assert marked(document) == ["One @ # One", "Two @ ## Two"]
    assert "# no\n\n  make\n" in text_of(document)


def test_headings_are_shown_without_their_html(tmp_path: Path) -> None:
    text = '# A &amp; B <a name="x"></a>\n\nText.\n\n## The `<b>` tag, 1 < 2 &lt;i&gt; <br/>\n\n<b>*Bold*</b>\n---\n'
    document = load(tmp_path, "a.md", text)
    assert [heading.text for heading in document.pages[0].headings] == [
        "A & B",
        "The <b> tag, 1 < 2 <i>",
        "Bold",
    ]
    assert document.title == "A & B"


def test_empty_front_matter_is_no_text(tmp_path: Path) -> None:
    assert text_of(load(tmp_path, "a.md", "---\n\n---\nText.\n")) == "Text."


def test_front_matter_of_hugo_is_no_text(tmp_path: Path) -> None:
    document = load(tmp_path, "a.md", '+++\ntitle = "The mill"\ndate = 2023-05-06\n+++\nText.\n')
    assert (document.title, document.published_at, text_of(document)) == ("The mill", "2023-05-06", "Text.")


def test_html_between_paragraphs_is_text_and_in_fences_it_stays(tmp_path: Path) -> None:
    text = (
        "<!-- a\n\nremark -->\nBefore <b>bold</b>.\n\n<table>\n<tr><td>a</td>\n\n<td>b</td></tr></table>\n\n"
        "```html\n<p>kept</p>\n```\n\n<p align=center>\n<img src=x>\n</p>\n\n<div>\nnever closed"
    )
    assert text_of(load(tmp_path, "a.md", text)) == (
        "\nBefore <b>bold</b>.\n\na | b\n\n```html\n<p>kept</p>\n```\n\n\nnever closed".lstrip("\n")
    )
