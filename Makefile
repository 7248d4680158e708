# What a developer runs. `make test` works on a fresh clone: it installs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LITE_STAMP := $(VENV)/.installed-lite
# After `make install-lite`, check and test do not install Spark.
ANY_INSTALL := $(if $(wildcard $(STAMP)),install,$(if $(wildcard $(LITE_STAMP)),install-lite,install))
KERNEL := $(wildcard src/odradek/records/*.c src/odradek/records/native/*.h setup.py)
UV := $(shell command -v uv 2>/dev/null)
PYTEST_ARGS ?=
BENCH_ARGS ?=
DEMO_ARGS ?=
HOSTILE_ARGS ?=
# Without compiled files every process of the tests compiles 350 modules anew: 260 ms, where the import takes 160.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install install-lite demo check stubs test judge bench soak-sim soak-cluster soak-eos soak-kills soak-replication soak-bulk soak-storage soak-spark soak-hostile soak-ids \
	soak-held soak-topics soak-bombs soak-fuzz mutants counts lock clean

install: $(STAMP)

# Without Spark, pandas and Java. What needs them is skipped by check and test, which say so; `make install` adds
# them.
install-lite: $(LITE_STAMP)

# Everything is pinned by hash, the build's own tools too, so the package is built without isolation.
ifneq ($(UV),)
define install_from
	test -x $(BIN)/python || uv venv -q --python $(PYTHON) $(VENV)
	uv pip install -q --python $(BIN)/python --require-hashes -r $(1)
	uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	touch $@
endef
else
define install_from
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r $(1)
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@
endef
endif

$(STAMP): pyproject.toml requirements.lock $(KERNEL)
	$(call install_from,requirements.lock)

$(LITE_STAMP): pyproject.toml requirements-lite.lock $(KERNEL)
	$(call install_from,requirements-lite.lock)

# Orders through Spark, exactly once, while driver and broker are killed; the picture of it is demo.svg.
demo: install
	$(BIN)/odradek demo $(DEMO_ARGS)

# Two at a time: mypy, and everything else beside it. Each tells what it found when it has ended.
CHECKS := check-types check-users check-format check-stubs check-layers
.PHONY: $(CHECKS)
check: $(ANY_INSTALL)
	$(MAKE) -j2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) --no-print-directory $(CHECKS)

MYPY_LITE := --disable-error-code import-not-found --allow-subclassing-any
check-types:
ifeq ($(ANY_INSTALL),install-lite)
	@echo "mypy: pyspark is not installed (make install-lite): what comes from it is not checked"
	$(BIN)/mypy $(MYPY_LITE)
else
	$(BIN)/mypy
endif

check-users:
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

check-format:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-stubs:
	$(BIN)/python tools/stubs --check

check-layers:
	$(BIN)/lint-imports

# The types of all requests and responses, for mypy: after a change of src/odradek/wire/definitions.
stubs: $(ANY_INSTALL)
	$(BIN)/python tools/stubs

# Classes in archives, with which the JVMs of Apache Kafka and Spark start in half or a third of the time: made once
# for each installation. The tests pass without them.
.PHONY: classes
classes: $(ANY_INSTALL)
	-$(BIN)/python -m tests.support.peer_classes
ifeq ($(ANY_INSTALL),install)
	-$(BIN)/python -m tests.spark.classes
endif

# Tests that share one Apache broker are one xdist group, those of Spark are three; four workers, since these wait a lot.
test: $(ANY_INSTALL) classes
	$(BIN)/python -m pytest -n 4 --dist loadgroup $(PYTEST_ARGS)

# The black-box tests against Apache Kafka itself: what it does not pass is not a fact about Kafka.
JUDGE_DIR := /tmp/odradek-judge
judge: $(ANY_INSTALL)
	tools/peer/peer start --port 23092 --dir $(JUDGE_DIR)
	ODRADEK_TEST_BOOTSTRAP=127.0.0.1:23092 $(BIN)/python -m pytest tests/compat tests/examples \
		tests/peer/test_java_tools.py tests/peer/test_java_transactions.py tests/robustness/test_frames.py $(PYTEST_ARGS); status=$$?; \
		tools/peer/peer stop --dir $(JUDGE_DIR); rm -rf $(JUDGE_DIR); exit $$status

bench: $(ANY_INSTALL)
	$(BIN)/python benchmarks/bench.py $(BENCH_ARGS)

# Every story of the simulator over many seeds, the quorum's over ten times as many; tests/sim plays the first
# ones. About an hour.
SEEDS ?= 1000
soak-sim: $(ANY_INSTALL)
	$(BIN)/odradek sim run --seeds $(SEEDS)
	$(BIN)/odradek sim run --transactions --seeds $(SEEDS)
	$(BIN)/odradek sim run --pipelines --seeds $(SEEDS)
	$(BIN)/odradek sim run --quorum --seeds $$((10 * $(SEEDS)))
	$(BIN)/python -m tests.sim.planted

# Clusters of whole nodes: SEEDS of them, each for SECONDS of virtual time, then the planted faults.
SECONDS ?= 30
soak-cluster: $(ANY_INSTALL)
	$(BIN)/odradek sim run --cluster --seeds $(SEEDS) --seconds $(SECONDS)
	$(BIN)/odradek sim run --replication --seeds $(SEEDS) --seconds $(SECONDS)
	$(BIN)/python -m tests.sim.planted_cluster
	$(BIN)/python -m tests.sim.planted_replication

# The active controller killed 50 times while topics are created, and stopped for 15 seconds; CI kills it 5 times, and
# stops it until the next one has decided.
soak-kills: $(ANY_INSTALL)
	ODRADEK_SOAK_KILLS=50 ODRADEK_SOAK_STOPPED_S=15 $(BIN)/python -m pytest -s tests/cluster/test_kills.py \
		tests/cluster/test_stopped.py $(PYTEST_ARGS)

# Replication in real processes for ten minutes: leaders killed and stopped for longer than a session, restarts in
# turn, nodes that cannot reach each other. Then replicas of ours and of Apache Kafka's, both killed.
soak-replication: $(ANY_INSTALL)
	ODRADEK_SOAK_LEADER_KILLS=30 ODRADEK_SOAK_PAUSES=4 ODRADEK_SOAK_SESSION_MS=9000 ODRADEK_SOAK_ROLLS=3 \
		ODRADEK_SOAK_CUTS=15 ODRADEK_SOAK_MIXED_ROUNDS=3 $(BIN)/python -m pytest -s \
		tests/cluster/test_replicated_kills.py tests/cluster/test_replicated_zombie.py \
		tests/cluster/test_replicated_restarts.py tests/cluster/test_lost_disks.py tests/cluster/test_network_faults.py \
		tests/peer/test_mixed_replication.py $(PYTEST_ARGS)

# Producers at the speed of the disk for ten minutes: no election, no stall of a node's loop; CI does four seconds.
soak-bulk: $(ANY_INSTALL)
	ODRADEK_SOAK_BULK_S=600 $(BIN)/python -m pytest -s tests/cluster/test_bulk_load.py $(PYTEST_ARGS)

# Consume-transform-produce while clients and node are killed, for ten minutes; CI does 25 seconds.
soak-eos: $(ANY_INSTALL)
	ODRADEK_SOAK_SECONDS=600 $(BIN)/python -m pytest -s tests/robustness/test_exactly_once.py $(PYTEST_ARGS)

# Producers at full speed into flushed topics while the node is killed, for ten minutes; CI does 25 seconds.
soak-storage: $(ANY_INSTALL)
	ODRADEK_SOAK_SECONDS=600 $(BIN)/python -m pytest -s tests/robustness/test_kill_storage.py $(PYTEST_ARGS)

# Spark drivers, tasks, executors and the broker killed at every step of the protocol, copies of tasks, stages run
# again, state: three times; CI does it once. Then 100,000 attempts, and 40,000 decisions of one query; CI does a
# part of them.
soak-spark: install
	ODRADEK_SOAK_ROUNDS=3 ODRADEK_SOAK_ATTEMPTS=100000 ODRADEK_SOAK_DECISIONS=40000 $(BIN)/python -m pytest -s \
		tests/spark/test_kills.py tests/spark/test_stateful.py tests/spark/test_many.py $(PYTEST_ARGS)

# Requests made to keep everybody waiting, at their whole lengths, beside Apache Kafka: how long others waited, and
# the memory it took. tests/hostile has them small. HOSTILE_ARGS="--rows list-offsets --no-apache" for a part.
soak-hostile: $(ANY_INSTALL)
	$(BIN)/python -m tests.hostile.soak $(HOSTILE_ARGS)

# Damaged requests and batches: 100,000 of them; CI does a tenth.
soak-fuzz: $(ANY_INSTALL)
	ODRADEK_SOAK_CASES=100000 $(BIN)/python -m pytest -s tests/robustness/test_fuzz.py $(PYTEST_ARGS)

# A node with 100,000 transactional ids: memory, restart, lists, expiry. HOSTILE_ARGS="--ids 10000" for fewer.
soak-ids: $(ANY_INSTALL)
	$(BIN)/python -m tests.hostile.soak_ids $(HOSTILE_ARGS)

# Thousands of topics made and deleted, again and again: memory, waits, descriptors, what is left on the disk.
soak-topics: $(ANY_INSTALL)
	$(BIN)/python -m tests.hostile.soak_topics $(HOSTILE_ARGS)

# Batches that decompress to far more than they are, on one connection and on many at once.
soak-bombs: $(ANY_INSTALL)
	$(BIN)/python -m tests.hostile.soak_bombs $(HOSTILE_ARGS)

# Clients that ask for much and then neither read nor send: memory, descriptors, what a producer sees meanwhile.
# HOSTILE_ARGS="--apache" for Apache Kafka too.
soak-held: $(ANY_INSTALL)
	$(BIN)/python -m tests.hostile.soak_held $(HOSTILE_ARGS)

# What six small loads cost in calls, system calls, allocations and (with valgrind) instructions; the tests hold it.
counts: $(ANY_INSTALL)
	$(BIN)/python -m tests.counts.main

# The parts of the documents that are made from the code: commands, states, diagrams, walks. The tests hold them up to
# date.
.PHONY: docs
docs: $(ANY_INSTALL)
	$(BIN)/python -m tests.support.cli_reference
	$(BIN)/python -m tests.support.client_states
	$(BIN)/python -m tests.documents.diagrams
	$(BIN)/python -m tests.documents.walks

# One line at a time is broken in FOLDER; what no test notices is listed, and compared with the list of what is known.
FOLDER ?= src/odradek/raft
MUTANTS_ARGS ?=
mutants: $(ANY_INSTALL)
	$(BIN)/python -m tests.mutants.run $(FOLDER) $(MUTANTS_ARGS)

# Only after a change of pyproject.toml's dependencies; needs pip-tools. The lite lock is a part of the other.
PIP_COMPILE := pip-compile -q --all-build-deps --allow-unsafe --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --strip-extras
lock:
	$(PIP_COMPILE) --extra dev --extra dev-spark -o requirements.lock pyproject.toml
	$(PIP_COMPILE) --extra dev -c requirements.lock -o requirements-lite.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	rm -f src/odradek/records/*.so
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf src/*.egg-info
