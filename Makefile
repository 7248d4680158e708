# What a developer runs. `make test` works on a fresh clone: it installs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
KERNEL := $(wildcard src/odradek/records/*.c src/odradek/records/native/*.h setup.py)
UV := $(shell command -v uv 2>/dev/null)
PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=
HOSTILE_ARGS ?=

.PHONY: install demo check test judge bench soak-eos soak-storage soak-spark hostile soak-hostile soak-ids soak-held mutants counts lock clean

install: $(STAMP)

# Everything is pinned by hash, the build's own tools too, so the package is built without isolation.
$(STAMP): pyproject.toml requirements.lock $(KERNEL)
ifneq ($(UV),)
	test -x $(BIN)/python || uv venv -q --python $(PYTHON) $(VENV)
	uv pip install -q --python $(BIN)/python --require-hashes -r requirements.lock
	uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	touch $@

# Orders through Spark, exactly once, while driver and broker are killed; the picture of it is demo.svg.
demo: install
	$(BIN)/odradek demo $(DEMO_ARGS)

check: install
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Tests that share one Apache broker are one xdist group; the rest is spread over two workers.
test: install
	$(BIN)/python -m pytest -n 2 --dist loadgroup $(PYTEST_ARGS)

# The black-box tests against Apache Kafka itself: what it does not pass is not a fact about Kafka.
JUDGE_DIR := /tmp/odradek-judge
judge: install
	tools/peer/peer start --port 23092 --dir $(JUDGE_DIR)
	ODRADEK_TEST_BOOTSTRAP=127.0.0.1:23092 $(BIN)/python -m pytest tests/compat \
		tests/peer/test_java_tools.py tests/peer/test_java_transactions.py tests/robustness/test_frames.py $(PYTEST_ARGS); status=$$?; \
		tools/peer/peer stop --dir $(JUDGE_DIR); rm -rf $(JUDGE_DIR); exit $$status

bench: install
	$(BIN)/python benchmarks/bench.py $(BENCH_ARGS)

# Consume-transform-produce while clients and node are killed, for ten minutes; CI does one.
soak-eos: install
	ODRADEK_SOAK_SECONDS=600 $(BIN)/python -m pytest -s tests/robustness/test_exactly_once.py $(PYTEST_ARGS)

# Producers at full speed into flushed topics while the node is killed, for ten minutes; CI does one.
soak-storage: install
	ODRADEK_SOAK_SECONDS=600 $(BIN)/python -m pytest -s tests/robustness/test_kill_storage.py $(PYTEST_ARGS)

# Spark drivers, tasks, executors and the broker killed at every step of the protocol, copies of tasks, stages run
# again, state: three times; CI does it once. Then 100,000 attempts, and 40,000 decisions of one query; CI does a
# part of them.
soak-spark: install
	ODRADEK_SOAK_ROUNDS=3 ODRADEK_SOAK_ATTEMPTS=100000 ODRADEK_SOAK_DECISIONS=40000 $(BIN)/python -m pytest -s \
		tests/spark/test_kills.py tests/spark/test_stateful.py tests/spark/test_many.py $(PYTEST_ARGS)

# What each callback of the loop does for requests made to keep everybody waiting. Not part of `make test` yet: some
# requests still take more than a slice.
hostile: install
	$(BIN)/python -m pytest -n 2 --dist loadgroup tests/hostile $(PYTEST_ARGS)

# Requests made to keep everybody waiting, at their whole lengths, beside Apache Kafka: how long others waited, and
# the memory it took. tests/hostile has them small. HOSTILE_ARGS="--rows list-offsets --no-apache" for a part.
soak-hostile: install
	$(BIN)/python -m tests.hostile.soak $(HOSTILE_ARGS)

# A node with 100,000 transactional ids: memory, restart, lists, expiry. HOSTILE_ARGS="--ids 10000" for fewer.
soak-ids: install
	$(BIN)/python -m tests.hostile.soak_ids $(HOSTILE_ARGS)

# Clients that ask for much and then neither read nor send: memory, descriptors, what a producer sees meanwhile.
# HOSTILE_ARGS="--apache" for Apache Kafka too.
soak-held: install
	$(BIN)/python -m tests.hostile.soak_held $(HOSTILE_ARGS)

# What six small loads cost in calls, system calls, allocations and (with valgrind) instructions; the tests hold it.
counts: install
	$(BIN)/python -m tests.counts.main

# One line at a time is broken in FOLDER; what no test notices is listed, and compared with the list of what is known.
FOLDER ?= src/odradek/raft
MUTANTS_ARGS ?=
mutants: install
	$(BIN)/python -m tests.mutants.run $(FOLDER) $(MUTANTS_ARGS)

# Only after a change of pyproject.toml's dependencies; needs pip-tools.
lock:
	pip-compile -q --extra dev --all-build-deps --allow-unsafe --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras \
		-o requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f src/odradek/records/*.so
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
