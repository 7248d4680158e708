"""The syntax of RE2J, the regular expressions by which Kafka's consumers subscribe, down to small trees.

Expressions are only ever matched against whole topic names, so that a class of characters is kept as those of
its characters that a topic name can have, and greed, captures and lines do not matter. What RE2J refuses is
refused: look-around, back references, stacked repetitions, classes it does not know.
"""

from typing import Final, NamedTuple

LEGAL: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz._-"
"""What a topic's name is made of."""

MAX_REPEAT = 1_000
MAX_DEPTH = 200

_DIGITS: Final = frozenset("0123456789")
_UPPER: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_LETTERS: Final = _UPPER | _LOWER
_ALL: Final = frozenset(LEGAL)
WORD: Final = _DIGITS | _LETTERS | frozenset("_")
_NOTHING: Final = frozenset[str]()

_PERL: Final = {"d": _DIGITS, "s": _NOTHING, "w": WORD}
_POSIX: Final = {
    "alnum": _DIGITS | _LETTERS,
    "alpha": _LETTERS,
    "ascii": _ALL,
    "blank": _NOTHING,
    "cntrl": _NOTHING,
    "digit": _DIGITS,
    "graph": _ALL,
    "lower": _LOWER,
    "print": _ALL,
    "punct": frozenset("._-"),
    "space": _NOTHING,
    "upper": _UPPER,
    "word": WORD,
    "xdigit": _DIGITS | frozenset("ABCDEFabcdef"),
}
_UNICODE: Final = {
    "Any": _ALL,
    "L": _LETTERS,
    "Ll": _LOWER,
    "Lu": _UPPER,
    "N": _DIGITS,
    "Nd": _DIGITS,
    "P": frozenset("._-"),
    "Pc": frozenset("_"),
    "Pd": frozenset("-"),
    "Po": frozenset("."),
    "Common": _DIGITS | frozenset("._-"),
    "Latin": _LETTERS,
}
_NAMES_WITHOUT_LEGAL: Final = """
    C Cc Cf Co Cs Lm Lo Lt M Mc Me Mn Nl No Pe Pf Pi Ps S Sc Sk Sm So Z Zl Zp Zs
    Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid
    Canadian_Aboriginal Carian Cham Cherokee Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari
    Egyptian_Hieroglyphs Ethiopic Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew
    Hiragana Imperial_Aramaic Inherited Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada
    Katakana Kayah_Li Kharoshthi Khmer Lao Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic
    Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian
    Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang Runic Samaritan Saurashtra Shavian Sinhala Sundanese
    Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh
    Ugaritic Unknown Vai Yi
"""
"""Categories and scripts that have no character of topic names."""
_UNICODE_WITHOUT_LEGAL: Final = frozenset(_NAMES_WITHOUT_LEGAL.split())
_CONTROL: Final = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_OCTAL: Final = "01234567"
_HEX: Final = frozenset("0123456789abcdefABCDEF")


class PatternError(ValueError):
    """The expression is not one, in RE2J's words."""


class Chars(NamedTuple):
    """One of these characters."""

    chars: frozenset[str]


class Sequence(NamedTuple):
    parts: "tuple[Node, ...]"


class Choice(NamedTuple):
    parts: "tuple[Node, ...]"


class Repeat(NamedTuple):
    part: "Node"
    least: int
    most: int | None


class Assertion(NamedTuple):
    """A place between characters: `begin`, `end`, `word` for a word's edge, `inside` for everywhere else."""

    kind: str


Node = Chars | Sequence | Choice | Repeat | Assertion
EMPTY: Final = Sequence(())
_BEGIN, _END = Assertion("begin"), Assertion("end")


def parse(text: str) -> Node:
    """Raises PatternError."""
    return _Parser(text).whole()


def folded(char: str) -> frozenset[str]:
    """A character in all its cases."""
    cases = {char, char.lower(), char.upper(), char.upper().lower(), char.lower().upper()}
    return frozenset(case for case in cases if len(case) == 1)


class _Parser:
    __slots__ = ("_at", "_depth", "_names", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._names: set[str] = set()

    # --- reading --------------------------------------------------------------------------------------

    def _peek(self, length: int = 1) -> str:
        return self._text[self._at : self._at + length]

    def _take(self, expected: str) -> bool:
        if self._text.startswith(expected, self._at):
            self._at += len(expected)
            return True
        return False

    def _next(self) -> str:
        char = self._peek()
        self._at += 1
        return char

    # --- structure ------------------------------------------------------------------------------------

    def whole(self) -> Node:
        node = self._choice(fold=False)
        if self._peek():
            raise PatternError("regexp/syntax: internal error: stack underflow")
        return node

    def _choice(self, fold: bool) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise PatternError("expression nests too deeply")
        branches: list[Node] = []
        parts: list[Node] = []
        last_was_repeat = False
        while (char := self._peek()) not in ("", ")"):
            start = self._at
            if char == "|":
                self._at += 1
                branches.append(Sequence(tuple(parts)))
                parts, last_was_repeat = [], False
                continue
            bounds = self._repetition()
            if bounds is not None:
                if not parts:
                    raise PatternError(f"missing argument to repetition operator: `{self._since(start)}`")
                if last_was_repeat:
                    raise PatternError(f"invalid nested repetition operator: `{self._since(start)}`")
                parts[-1] = Repeat(parts[-1], *bounds)
                last_was_repeat = True
                continue
            # A brace that means itself counts as a repetition all the same, there as here.
            last_was_repeat = char == "{"
            if self._text.startswith("(?", self._at) and not self._starts_named_group():
                flagged = self._flags(fold)
                if isinstance(flagged, bool):
                    fold = flagged
                else:
                    parts.append(flagged)
            else:
                parts += self._atoms(fold)
        branches.append(Sequence(tuple(parts)))
        self._depth -= 1
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _since(self, start: int) -> str:
        return self._text[start : self._at]

    def _repetition(self) -> tuple[int, int | None] | None:
        bounds: tuple[int, int | None] | None = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(
            self._peek()
        )
        if bounds is not None:
            self._at += 1
        elif self._peek() == "{":
            bounds = self._counted()
        if bounds is not None:
            self._take("?")
        return bounds

    def _counted(self) -> tuple[int, int | None] | None:
        """`{n}`, `{n,}` or `{n,m}`; anything else in braces means itself."""
        start = self._at
        self._at += 1
        least = self._number()
        most: int | None = least
        if least is not None and self._take(","):
            most = None if self._peek() == "}" else self._number()
            if most is None and self._peek() != "}":
                least = None
        if least is None or not self._take("}"):
            self._at = start
            return None
        if least > MAX_REPEAT or (most is not None and (most > MAX_REPEAT or most < least)):
            raise PatternError(f"invalid repeat count: `{self._since(start)}`")
        return least, most

    def _number(self) -> int | None:
        """No leading zeros; None where there is none."""
        start = self._at
        while self._peek() in _DIGITS and self._peek():
            self._at += 1
        digits = self._since(start)
        if not digits or (len(digits) > 1 and digits[0] == "0"):
            return None
        return int(digits) if len(digits) < 9 else MAX_REPEAT + 1

    def _atoms(self, fold: bool) -> list[Node]:
        char = self._peek()
        if char == "(":
            return [self._group(fold)]
        if char == "[":
            return [Chars(self._bracket(fold))]
        if char == "\\":
            return self._escape(fold)
        self._at += 1
        if char == ".":
            return [Chars(_ALL)]
        if char == "^":
            return [_BEGIN]
        if char == "$":
            return [_END]
        return [_literal(char, fold)]

    # --- groups ---------------------------------------------------------------------------------------

    def _starts_named_group(self) -> bool:
        return self._text.startswith(("(?P<", "(?<"), self._at)

    def _group(self, fold: bool) -> Node:
        start = self._at
        if self._starts_named_group():
            self._at = self._text.index("<", start) + 1
            end = self._text.find(">", self._at)
            if end < 0:
                raise PatternError(f"invalid named capture: `{self._text[start:]}`")
            name = self._text[self._at : end]
            if not name or not all(c in WORD for c in name):
                raise PatternError(f"invalid named capture: `{self._text[start : end + 1]}`")
            if name in self._names:
                raise PatternError(f"duplicate capture group name: `{name}`")
            self._names.add(name)
            self._at = end + 1
        else:
            self._at += 1
        return self._closed(fold)

    def _closed(self, fold: bool) -> Node:
        node = self._choice(fold)
        if not self._take(")"):
            raise PatternError(f"missing closing ): `{self._text}`")
        return node

    def _flags(self, fold: bool) -> Node | bool:
        """`(?flags)` gives how to go on, `(?flags:...)` the group."""
        start = self._at
        self._at += 2
        sign, saw_flag = True, False
        while True:
            char = self._next()
            if char and char in "imsU":
                saw_flag = True
                if char == "i":
                    fold = sign
            elif char == "-" and sign:
                sign, saw_flag = False, False
            elif char and char in ":)" and (sign or saw_flag):
                return fold if char == ")" else self._closed(fold)
            else:
                raise PatternError(f"invalid or unsupported Perl syntax: `{self._since(start)}`")

    # --- escapes --------------------------------------------------------------------------------------

    def _escape(self, fold: bool) -> list[Node]:
        kind = self._peek(2)[1:]
        if kind in ("A", "z", "b", "B"):
            self._at += 2
            return [{"A": _BEGIN, "z": _END, "b": Assertion("word"), "B": Assertion("inside")}[kind]]
        if kind == "C":
            raise PatternError("invalid escape sequence: `\\C`")
        if kind == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at + 2 : len(self._text) if end < 0 else end]
            self._at = len(self._text) if end < 0 else end + 2
            return [_literal(char, fold) for char in quoted]
        named = self._named_class()
        return [Chars(named)] if named is not None else [_literal(self._escaped_char(), fold)]

    def _named_class(self) -> frozenset[str] | None:
        r"""`\d`, `\pN` or `\p{Greek}`, and what they are not."""
        kind = self._peek(2)[1:]
        if kind and kind.lower() in _PERL:
            self._at += 2
            return _negated(_PERL[kind.lower()], kind.isupper())
        if kind in ("p", "P"):
            return self._unicode_class(kind == "P")
        return None

    def _unicode_class(self, negated: bool) -> frozenset[str]:
        start = self._at
        self._at += 2
        name = self._next()
        if name == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise PatternError(f"invalid character class range: `{self._text[start:]}`")
            name = self._text[self._at : end]
            self._at = end + 1
        if name.startswith("^"):
            negated, name = not negated, name[1:]
        if name in _UNICODE:
            return _negated(_UNICODE[name], negated)
        if name in _UNICODE_WITHOUT_LEGAL:
            return _negated(_NOTHING, negated)
        raise PatternError(f"invalid character class range: `{self._since(start)}`")

    def _escaped_char(self) -> str:
        start = self._at
        self._at += 1
        char = self._next()
        if not char:
            raise PatternError("trailing backslash at end of expression")
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "0" or (char in "1234567" and self._peek() in _OCTAL and self._peek()):
            while self._peek() and self._peek() in _OCTAL and self._at - start < 4:
                self._at += 1
            return chr(int(self._text[start + 1 : self._at], 8))
        if char == "x":
            return self._hex_char(start)
        if not (char.isascii() and char.isalnum()):
            return char
        raise PatternError(f"invalid escape sequence: `{self._since(start)}`")

    def _hex_char(self, start: int) -> str:
        if self._take("{"):
            end = self._text.find("}", self._at)
            digits = "" if end < 0 else self._text[self._at : end]
            self._at = len(self._text) if end < 0 else end + 1
        else:
            digits = self._peek(2)
            self._at += 2
            if len(digits) < 2:
                digits = ""
        if not digits or not all(c in _HEX for c in digits) or int(digits, 16) > 0x10FFFF:
            raise PatternError(f"invalid escape sequence: `{self._since(start)}`")
        return chr(int(digits, 16))

    # --- classes --------------------------------------------------------------------------------------

    def _bracket(self, fold: bool) -> frozenset[str]:
        start = self._at
        self._at += 1
        negated = self._take("^")
        chars: set[str] = set()
        first = True
        while first or self._peek() != "]":
            if not self._peek():
                raise PatternError(f"missing closing ]: `{self._text[start:]}`")
            first = False
            posix = self._posix_class()
            if posix is None and self._peek() == "\\":
                posix = self._named_class()
            if posix is not None:
                chars |= _any_case(posix) if fold else posix
                continue
            low = self._class_char(start)
            high = low
            range_start = self._at - 1
            if self._peek() == "-" and self._peek(2) != "-]" and len(self._peek(2)) == 2:
                self._at += 1
                high = self._class_char(start)
                if high < low:
                    raise PatternError(f"invalid character class range: `{self._since(range_start)}`")
            chars |= _range(low, high, fold)
        self._at += 1
        return _negated(frozenset(chars), negated)

    def _posix_class(self) -> frozenset[str] | None:
        end = self._text.find(":]", self._at + 2) if self._peek(2) == "[:" else -1
        if end < 0:
            return None
        name = self._text[self._at + 2 : end]
        positive = name.removeprefix("^")
        if positive not in _POSIX:
            raise PatternError(f"invalid character class range: `{self._text[self._at : end + 2]}`")
        self._at = end + 2
        return _negated(_POSIX[positive], positive != name)

    def _class_char(self, start: int) -> str:
        if not self._peek():
            raise PatternError(f"missing closing ]: `{self._text[start:]}`")
        return self._escaped_char() if self._peek() == "\\" else self._next()


def _literal(char: str, fold: bool) -> Chars:
    return Chars((folded(char) if fold else frozenset(char)) & _ALL)


def _negated(chars: frozenset[str], negated: bool) -> frozenset[str]:
    return _ALL - chars if negated else chars


def _any_case(chars: frozenset[str]) -> frozenset[str]:
    return frozenset(case for char in chars for case in folded(char)) & _ALL


def _range(low: str, high: str, fold: bool) -> frozenset[str]:
    found = frozenset(char for char in LEGAL if low <= char <= high)
    if not fold:
        return found
    beyond = frozenset(char for char in "\u212a\u017f" if low <= char <= high)
    return _any_case(found | beyond)
