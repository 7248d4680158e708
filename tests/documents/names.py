"""Finds the names in a document that do not exist. Pure, except for what `known` reads.

Five kinds: `Class.method` and `module.function`, files, commands of odradek with their options, make's
targets, links. Only names in code, in drawings and in paths count.
"""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from tests.documents import known

DOCUMENTS = [
    known.ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md")
] + sorted([*(known.ROOT / "docs").glob("*.md"), known.ROOT / "examples/README.md"])

READERS_OWN = {"job.py", "/opt/job/job.py", "transform.py", "pipeline.toml", "spark-pipeline.yml"}
"""Files of a reader, in examples."""
NOT_OURS = {"spark.speculation", "odradek does"}
"""A key of Spark's, and words of a message."""

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_INDENTED = re.compile(r"(?:^|\n\n)((?:    .*\n)+)")
_SPAN = re.compile(r"`([^`\n]+)`")
_MEMBER = re.compile(r"(?<![\w./-])([A-Z]\w*[a-z]\w*)\.([a-z_]\w*)")
_FUNCTION = re.compile(r"(?<![\w./-])([a-z_]\w*(?:/[a-z_]\w*)*)\.([a-z_]\w*)(?![\w.-])")
_FILE = re.compile(r"(?<![\w:/.-])/?[\w<*.-][\w<>*./-]*\.(?:py|pyi|md|h|c|sh|toml|json|svg)(?![\w(-])")
_PATH = re.compile(r"(?<![\w:/.<-])([a-z_][\w]*(?:/[a-z0-9_*-]{2,})+)(?![\w.:-]|/[\w<])")
_COMMAND = re.compile(
    r"(?:^|(?<=\$ )|(?<=\| )|(?<=bin/)|(?<=&& )|(?<=next: ))odradek((?: +[^\s|>;&`]+)+)", re.M
)
_MAKE = re.compile(r"(?:^|(?<=\$ )|(?<=&& ))make((?: +[A-Za-z][^\s`#]*)+)", re.M)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
SUFFIXES = {
    "py",
    "pyi",
    "md",
    "h",
    "c",
    "sh",
    "toml",
    "json",
    "svg",
    "log",
    "properties",
    "checkpoint",
    "lock",
}


def wrong(document: Path, text: str) -> list[str]:
    """Every name of the text that names nothing."""
    bare = re.sub(r"https?://\S+", "", text)
    fenced = _FENCE.findall(bare)
    prose = _FENCE.sub("", bare)
    drawings = [body for language, body in fenced if not language and "$ " not in body]
    shown = [body for language, body in fenced if language != "python"]
    indented = [re.sub("^    ", "", block, flags=re.M) for block in _INDENTED.findall(prose)]
    spans = _SPAN.findall(prose)
    found: list[str] = []
    for code in [*spans, *drawings]:
        found += [*_members(code), *_functions(code)]
    for words in [prose, *drawings]:
        found += [*_files(document, words), *_paths(words)]
    for code in [*spans, *shown, *indented]:
        found += [*_commands(code), *_targets(code)]
    found += _links(document, prose)
    return [name for name in found if name not in NOT_OURS]


def _members(code: str) -> Iterator[str]:
    for owner, name in _MEMBER.findall(code):
        if name not in known.members().get(owner, ()):
            yield f"{owner}.{name}"


def _functions(code: str) -> Iterator[str]:
    """`core/errors.is_exhausted` is looked up in its module. `kernel.columns` may be an object's as well."""
    for module, name in _FUNCTION.findall(code):
        if name in SUFFIXES or module not in known.module_names():
            continue
        there = known.module_names()[module] if "/" in module else known.attributes()
        if name not in there and f"{module}.{name}" not in known.sources():
            yield f"{module}.{name}"


def _files(document: Path, words: str) -> Iterator[str]:
    for match in _FILE.finditer(words):
        name = match[0].removeprefix("./")
        beside = document.parent / name
        if name in READERS_OWN or name in known.endings() or beside.exists():
            continue
        pattern = re.sub(r"<\w+>", "*", name)
        if "*" in pattern and any(fnmatch(ending, pattern) for ending in known.endings()):
            continue
        yield name


def _paths(words: str) -> Iterator[str]:
    """`log/opening/loader`: names a module if its first part is a folder's name."""
    for path in _PATH.findall(words):
        if path.split("/")[0] not in known.folder_names() or path in known.endings():
            continue
        if not ("*" in path and any(fnmatch(ending, path) for ending in known.endings())):
            yield path


def _commands(code: str) -> Iterator[str]:
    for rest in _COMMAND.findall(code):
        words = rest.split()
        name = "odradek"
        while words and name in known.groups() and re.fullmatch("[a-z][a-z-]*", words[0]):
            name = f"{name} {words.pop(0)}"
        if name in known.groups():
            continue
        if name not in known.commands():
            yield name
            continue
        for option in re.findall(r"(?<!\S)--[a-z][\w-]*", " ".join(words)):
            if option not in known.commands()[name]:
                yield f"{name} {option}"


def _targets(code: str) -> Iterator[str]:
    for rest in _MAKE.findall(code):
        for word in rest.split():
            if "=" in word or not re.fullmatch(r"[a-z][\w*-]*", word):
                break
            if not any(fnmatch(target, word) for target in known.targets()):
                yield f"make {word}"


def _links(document: Path, prose: str) -> Iterator[str]:
    for link in _LINK.findall(prose):
        place, _, anchor = link.partition("#")
        target = (document.parent / place) if place else document
        if not target.exists() or (anchor and anchor not in _anchors(target.read_text())):
            yield f"({link})"


def _anchors(text: str) -> set[str]:
    """Of the headings, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}
