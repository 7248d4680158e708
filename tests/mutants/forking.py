"""The pytest plugin behind `make mutants`: in place of one run of all tests, a fork for each mutant."""

import gc
import math
import os
import pickle
import resource
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import Struct
from types import CodeType, FrameType, FunctionType
from typing import Any, Final, NamedTuple, NoReturn

import pytest

from tests.mutants.mutations import Mutant, mutants_of

LONGEST_TEST_S: Final = 2.0
"""A test that takes longer is not run against mutants. CPU time, as in all of these."""
LONGEST_MUTANT_S: Final = 6.0
"""All tests of one mutant; those that would go beyond it, the slowest, are not run."""
_EXAMPLES: Final = 25
"""Of a property. One that takes hundreds to notice a fault is too slow for thousands of mutants."""
_PATIENCE: Final = 5
"""How many seconds a test may wait in place of one second of CPU time."""
LEAST_CLOCK_S = 15.0
"""For the quickest test. A busy machine makes none late; one that waits for ever is."""
_LARGEST: Final = 4 << 30
"""The memory of a fork, in bytes: some mutants never stop to collect."""
_SURVIVED, _CAUGHT, _BROKEN = 0, 1, 2

_NUMBER: Final = Struct(">I")

Place = tuple[str, str]
"""A file, and the qualified name of a function in it that is not inside another."""
Functions = dict[tuple[str, str, int], list[FunctionType]]
"""By their file, their qualified name and their first line."""


class _Calls(NamedTuple):
    """Which tests call which functions, how long each test takes, and which do not pass."""

    of: dict[Place, set[int]]
    seconds: dict[int, float]
    failed: list[int]


class _Job(NamedTuple):
    """A mutant and its tests. With suspects: those tests, without the mutant."""

    file: Path
    mutant: Mutant
    chosen: list[int]
    suspects: list[int] | None = None


class _Running(NamedTuple):
    """A fork: what it does, with which tests, and where it says which test it begins."""

    job: _Job
    tests: list[int]
    reading: int


class Harness:
    """Mutants of files, run against the tests that pytest has collected."""

    def __init__(self, files: list[Path], every: int, jobs: int) -> None:
        self.survivors: list[tuple[Path, Mutant]] = []
        self.caught = 0
        self.failure: str | None = "it did not come to its end"
        self._sources = {file: file.read_text() for file in files}  # a run is long: a file may change
        self._every = every
        self._jobs = jobs
        self._functions: Functions = {}
        self._has_failed = False
        self._unreliable: dict[int, str] = {}

    @property
    def unreliable(self) -> list[str]:
        """Tests that failed without a mutant, if only once."""
        return sorted(self._unreliable.values())

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._has_failed = self._has_failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        calls = self._observed(session)
        self._unreliable.update((index, session.items[index].nodeid) for index in calls.failed)
        self._functions = _functions(self._sources)
        gc.freeze()  # a collection in a fork would copy the memory of all that is loaded
        work = [_Job(file, mutant, chosen) for file, mutant, chosen in self._work(calls)]
        running: dict[int, _Running] = {}
        for number, job in enumerate(work):
            while len(running) >= self._jobs:
                self._reap(session, calls, running)
            self._start(session, calls, running, job)
            _progress(number, len(work), len(self.survivors))
        while running:
            self._reap(session, calls, running)
        _progress(len(work), len(work), len(self.survivors))
        self.failure = None
        return True

    def _work(self, calls: _Calls) -> Iterator[tuple[Path, Mutant, list[int]]]:
        for file, source in self._sources.items():
            for mutant in list(mutants_of(source))[:: self._every]:
                tests = calls.of.get((str(file), mutant.function), set())
                chosen, left_s = [], LONGEST_MUTANT_S
                for index in sorted(tests, key=lambda index: calls.seconds[index]):
                    left_s -= calls.seconds[index]
                    if left_s < 0 or calls.seconds[index] > LONGEST_TEST_S:
                        break
                    chosen.append(index)
                yield file, mutant, chosen

    def _observed(self, session: pytest.Session) -> _Calls:
        """Run all tests once, in a fork, and see what they call."""
        print(f"running {len(session.items)} tests once, to see what they call", flush=True)
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            with os.fdopen(writing, "wb") as out:
                pickle.dump(self._observe(session), out)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            calls: _Calls = pickle.load(pipe)
        os.waitpid(pid, 0)
        return calls

    def _observe(self, session: pytest.Session) -> _Calls:
        _silence()
        wanted = {str(file) for file in self._sources}
        found: defaultdict[Place, set[int]] = defaultdict(set)
        calls = _Calls({}, {}, [])
        seen: set[CodeType] = set()

        def look(frame: FrameType, _event: str, _: Any) -> None:
            """Told of calls only, since it asks for no lines."""
            code = frame.f_code
            if code not in seen:
                seen.add(code)
                if code.co_filename in wanted:
                    found[code.co_filename, code.co_qualname.partition(".<locals>")[0]].add(index)

        for index in range(len(session.items)):
            seen.clear()
            threading.settrace(look)
            sys.settrace(look)
            started_idle_s, started_cpu_s = _idle_s(), time.process_time()
            try:
                self._has_failed = False
                self._run(session, [index])
            finally:
                sys.settrace(None)
                threading.settrace(None)  # type: ignore[arg-type]
            waited_s = (_idle_s() - started_idle_s) / _PATIENCE
            calls.seconds[index] = time.process_time() - started_cpu_s + waited_s
            if self._has_failed:
                calls.failed.append(index)
        calls.of.update(found)
        return calls

    def _run(self, session: pytest.Session, chosen: list[int]) -> None:
        items = [session.items[index] for index in chosen]
        for number, item in enumerate(items, 1):
            following = items[number] if number < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._has_failed:
                return

    def _start(self, session: pytest.Session, calls: _Calls, running: dict[int, _Running], job: _Job) -> None:
        tests = job.suspects or [index for index in job.chosen if index not in self._unreliable]
        reading, writing = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reading)
            self._live(session, job, [(index, calls.seconds[index]) for index in tests], writing)
        os.close(writing)
        running[pid] = _Running(job, tests, reading)

    def _live(
        self, session: pytest.Session, job: _Job, tests: list[tuple[int, float]], writing: int
    ) -> NoReturn:
        """The fork: exchange the code, run the tests, and say which one begins: the last one ended it."""
        result = _BROKEN
        try:
            os.setsid()  # what its tests start ends with it
            _use_own_directory(session)
            resource.setrlimit(resource.RLIMIT_DATA, (_LARGEST, _LARGEST))
            _silence()
            if job.suspects is None:
                _exchange(self._functions, job.file, job.mutant)
            result = _CAUGHT
            for number, (index, seconds) in enumerate(tests):
                os.write(writing, _NUMBER.pack(number))
                _end_after(3 + 10 * seconds, LEAST_CLOCK_S + 4 * _PATIENCE * seconds)
                self._has_failed = False
                self._run(session, [index])
                if self._has_failed:
                    os._exit(_CAUGHT)
            os._exit(_SURVIVED)
        finally:
            os._exit(result)

    def _reap(self, session: pytest.Session, calls: _Calls, running: dict[int, _Running]) -> None:
        """Wait until a fork has ended, and decide."""
        pid, status = os.wait()
        _kill_group(pid)
        shutil.rmtree(_directory_of(session, pid), ignore_errors=True)
        job, tests, reading = running.pop(pid)
        with os.fdopen(reading, "rb") as pipe:
            begun = pipe.read()
        code = os.waitstatus_to_exitcode(status)
        assert code != _BROKEN, f"cannot try {job.mutant}"
        last = _NUMBER.unpack(begun[-_NUMBER.size :])[0] if code != _SURVIVED else None
        follow_up = self._decided(session, job, tests, last)
        if follow_up is not None:
            self._start(session, calls, running, follow_up)

    def _decided(self, session: pytest.Session, job: _Job, tests: list[int], last: int | None) -> _Job | None:
        """Count the mutant, or say what to run before it can be counted. `last`: the test that did not pass.

        What fails, hangs or takes too long under a mutant is run once more without it, in the same order. A
        test that does not pass then either proves nothing, and is left out from then on.
        """
        if last is None:
            if job.suspects is None:
                self.survivors.append((job.file, job.mutant))
            else:
                self.caught += 1
            return None
        if job.suspects is None:
            return job._replace(suspects=tests[: last + 1])
        self._unreliable[tests[last]] = session.items[tests[last]].nodeid
        return job._replace(suspects=None)


def _functions(files: Iterable[Path]) -> Functions:
    """All functions with code of these files, wherever they are held."""
    names = {str(file) for file in files}
    found: Functions = defaultdict(list)
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and function.__code__.co_filename in names:
            code = function.__code__
            found[code.co_filename, code.co_qualname, code.co_firstlineno].append(function)
    return found


def _exchange(functions: Functions, file: Path, mutant: Mutant) -> None:
    """Give the mutant's code to the function that has the original's."""
    code = _code_of(compile(mutant.source, str(file), "exec"), mutant)
    holders = functions[str(file), mutant.function, mutant.first_line]
    assert holders, f"nothing has the code of {mutant.function} at line {mutant.first_line}"
    for function in holders:
        function.__code__ = code


def _code_of(module: CodeType, mutant: Mutant) -> CodeType:
    waiting = [module]
    while waiting:
        code = waiting.pop()
        if code.co_qualname == mutant.function and code.co_firstlineno == mutant.first_line:
            return code
        waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    raise AssertionError(f"no code of {mutant.function} at line {mutant.first_line}")


def _idle_s() -> float:
    """How long this process has waited for anything but its turn on a CPU."""
    delays = Path("/proc/self/schedstat")
    delayed_ns = int(delays.read_text().split()[1]) if delays.exists() else 0
    return time.monotonic() - delayed_ns / 1e9 - time.process_time()


def _directory_of(session: pytest.Session, pid: int) -> Path:
    return Path(session.config.option.basetemp or tempfile.gettempdir(), f"fork-{pid}")


def _use_own_directory(session: pytest.Session) -> None:
    """Forks run the same tests at the same time, and pytest empties its directory before their first."""
    directory = _directory_of(session, os.getpid())
    directory.mkdir(parents=True)
    tempfile.tempdir = str(directory)
    session.config._tmp_path_factory._given_basetemp = directory / "tests"  # type: ignore[attr-defined]


def _end_after(cpu_s: float, clock_s: float) -> None:
    """End this process when a test has taken so much CPU time from now on, or so long."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    limit_s = math.ceil(used.ru_utime + used.ru_stime + cpu_s)
    resource.setrlimit(resource.RLIMIT_CPU, (limit_s, resource.RLIM_INFINITY))
    signal.setitimer(signal.ITIMER_REAL, clock_s)


def _silence() -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nothing, fd)
    os.close(nothing)


def _kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def bound_properties() -> None:
    """Few examples, none of them made smaller or remembered. Call it before tests are imported."""
    from hypothesis import Phase, settings

    make = settings.__init__

    def make_small(self: settings, parent: settings | None = None, **given: Any) -> None:
        given["max_examples"] = min(given.get("max_examples", _EXAMPLES), _EXAMPLES)
        given |= {"phases": (Phase.explicit, Phase.generate), "database": None, "derandomize": True}
        make(self, parent, **given)

    settings.__init__ = make_small  # type: ignore[method-assign]
    settings.register_profile("mutants")
    settings.load_profile("mutants")


def _progress(done: int, of: int, survivors: int) -> None:
    if done % 25 == 0 or done == of:
        print(f"\r{done} of {of} mutants, {survivors} survived", end="\n" if done == of else "", flush=True)
