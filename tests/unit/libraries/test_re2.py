"""Regular expressions by which consumers subscribe: what RE2J 1.8 was seen to take, refuse and match."""

import time
import tracemalloc

import pytest

from odradek.libraries.re2 import MAX_STATES, Pattern, PatternError
from odradek.runtime.slices import at_once

NAMES = ["a", "b", "ab", "aab", "A", "S", "k", "K", "topic-1", "TOPIC-x", "a.b", "0", "07", "a_b", "-", "caa"]


@pytest.mark.parametrize(
    ("pattern", "matched"),
    [
        ("", []),
        ("a", ["a"]),
        ("a.*", ["a", "ab", "aab", "a.b", "a_b"]),
        (r"a\.b", ["a.b"]),
        ("(a+)+b", ["ab", "aab"]),
        ("^topic-[0-9]$", ["topic-1"]),
        ("(?i)TOPIC-.*", ["topic-1", "TOPIC-x"]),
        ("(?i:a)b|caa", ["ab", "caa"]),
        ("a{2}b", ["aab"]),
        ("a{1,}b?", ["a", "ab", "aab"]),
        ("c?a{,2}", []),
        ("[^a-z]", ["A", "S", "K", "0", "-"]),
        ("[a-c-]", ["a", "b", "-"]),
        ("[[:digit:]]+", ["0", "07"]),
        ("[[:^alpha:]]", ["0", "-"]),
        (r"\d{2}", ["07"]),
        (r"\p{Lu}", ["A", "S", "K"]),
        (r"\P{Latin}+", ["0", "07", "-"]),
        (r"\pN", ["0"]),
        (r"\p{^Greek}", ["a", "b", "A", "S", "k", "K", "0", "-"]),
        (r"\x61|\x{62}", ["a", "b"]),
        (r"\060", ["0"]),
        (r"\Qa.\Eb", ["a.b"]),
        (r"\w\b.\b\w", ["a.b"]),
        (r"a\Bb", ["ab"]),
        ("(?P<n>a)(?<m>b)", ["ab"]),
        ("(?i)\u017f", ["S"]),
        ("(?i)[\u212a]", ["k", "K"]),
        ("a{x", []),
        ("a|b|", ["a", "b"]),
        ("(?s)a.b(?-s)", ["aab", "a.b", "a_b"]),
    ],
)
def test_matches_what_re2j_matches(pattern: str, matched: list[str]) -> None:
    assert [name for name in NAMES if at_once(at_once(Pattern.of(pattern)).matches(name))] == matched


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a)",
        "[",
        "[]",
        "[a",
        "*",
        "a|*",
        "(*)",
        "a**",
        "a+*",
        "a{2}{3}",
        "{*",
        "a{1001}",
        "a{3,1}",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?>a)",
        "(?P=n)",
        "(?--i)a",
        "(?-)a",
        "(?P<a>b)(?P<a>c)",
        "(?P<a-b>c)",
        "(?P<>a)",
        "(?P<n",
        r"\1",
        r"\C",
        r"\Z",
        r"\q",
        r"\u0041",
        r"\p{Foo}",
        r"\p{Greek",
        r"\x{110000}",
        r"\x4",
        "[z-a]",
        "[[:foo:]]",
        r"[a-\d]",
        "\\",
    ],
)
def test_refuses_what_re2j_refuses(pattern: str) -> None:
    with pytest.raises(PatternError):
        at_once(Pattern.of(pattern))


def test_no_expression_takes_more_than_linear_time() -> None:
    pattern = at_once(Pattern.of("(a|a)*(a*)*(a+a+)+b"))
    start = time.perf_counter()
    assert not at_once(pattern.matches("a" * 249))
    assert time.perf_counter() - start < 2


def test_an_expression_out_of_all_proportion_is_refused() -> None:
    with pytest.raises(PatternError, match="too large"):
        at_once(Pattern.of(f"((a{{100}}){{100}}){{{MAX_STATES // 1000}}}"))
    with pytest.raises(PatternError, match="too deeply"):
        at_once(Pattern.of("(" * 5_000 + ")" * 5_000))


def test_what_an_expression_remembers_is_bounded() -> None:
    """Each position of the name is another set of thousands of states."""
    pattern = at_once(Pattern.of("([ab]?){1000}" * 4))
    names = [f"{'ab' * 100}{number}" for number in range(2)]
    tracemalloc.start()
    try:
        found = [name for name in names if at_once(pattern.matches(name))]
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert not found
    assert peak < 16 << 20
