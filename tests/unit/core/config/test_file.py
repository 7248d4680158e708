"""Java properties text is read as java.util.Properties reads it."""

import pytest

from odradek.core.configs import parse_properties


def test_separators_are_equals_colon_or_blank() -> None:
    text = "a=1\nb: 2\nc 3\nd = 4\ne\t:\t5\nf"
    assert parse_properties(text) == {"a": "1", "b": "2", "c": "3", "d": "4", "e": "5", "f": ""}


def test_comments_and_blank_lines_are_skipped() -> None:
    assert parse_properties("# one\n  ! two\n\n   \na=1 # not a comment\n") == {"a": "1 # not a comment"}


def test_a_trailing_backslash_continues_the_line() -> None:
    assert parse_properties("listeners=A://:1,\\\n    B://:2\nx=1\\\\\ny=2") == {
        "listeners": "A://:1,B://:2",
        "x": "1\\",
        "y": "2",
    }


def test_a_comment_does_not_end_a_continued_line() -> None:
    assert parse_properties("a=1,\\\n# 2") == {"a": "1,# 2"}


def test_escapes_are_resolved_in_keys_and_values() -> None:
    assert parse_properties("a\\ b\\=c=x\\ty\\u00e9\\z") == {"a b=c": "x\tyéz"}


def test_broken_unicode_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties("a=\\u00g0")


def test_later_keys_replace_earlier_ones_and_line_ends_may_be_of_any_kind() -> None:
    assert parse_properties("a=1\r\nb=2\ra=3") == {"a": "3", "b": "2"}


def test_blanks_after_a_value_belong_to_it() -> None:
    assert parse_properties("a = 1  ") == {"a": "1  "}
