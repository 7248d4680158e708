"""Reading the text of a Java properties file, such as Kafka's server.properties. Pure: text in, pairs out."""

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """Keys and values with Java's rules: `=`, `:` or blank between them, `#` and `!` comments, continuation
    lines, escapes; a later key replaces an earlier one."""
    pairs: dict[str, str] = {}
    for line in _logical_lines(text):
        key_end = _key_end(line)
        value_start = key_end
        while value_start < len(line) and line[value_start] in _BLANK:
            value_start += 1
        if value_start < len(line) and line[value_start] in "=:":
            value_start += 1
            while value_start < len(line) and line[value_start] in _BLANK:
                value_start += 1
        pairs[_unescape(line[:key_end])] = _unescape(line[value_start:])
    return pairs


def _logical_lines(text: str) -> list[str]:
    lines: list[str] = []
    pending: str | None = None
    for natural in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = natural.lstrip(_BLANK)
        if pending is None and (not line or line[0] in "#!"):
            continue
        line = line if pending is None else pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        else:
            lines.append(line)
            pending = None
    if pending:
        lines.append(pending)
    return lines


def _key_end(line: str) -> int:
    i = 0
    while i < len(line):
        if line[i] == "\\":
            i += 2
        elif line[i] in "=:" or line[i] in _BLANK:
            return i
        else:
            i += 1
    return len(line)


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    out: list[str] = []
    i = 0
    while i < len(text):
        c = text[i]
        i += 1
        if c != "\\" or i == len(text):
            out.append(c)
            continue
        c = text[i]
        i += 1
        if c == "u":
            digits = text[i : i + 4]
            try:
                out.append(chr(int(digits, 16)))
            except ValueError:
                raise ValueError(f"Malformed \\uxxxx encoding: \\u{digits}") from None
            i += 4
        else:
            out.append(_ESCAPES.get(c, c))
    return "".join(out)
