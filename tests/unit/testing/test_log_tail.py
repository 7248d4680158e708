"""The broker's log: in its tail, not in the log of the process or test around it."""

import logging

from odradek.testing import Broker

pytest_plugins = ["pytester"]


def test_a_broker_leaves_the_logging_of_its_process_as_it_was(caplog):
    logger = logging.getLogger("odradek")
    before = logger.level, logger.propagate, list(logger.handlers), logger.parent
    with Broker() as one:
        with Broker() as two:
            pass
        one.look(lambda node: logging.getLogger("odradek.test").info("a line"))
        assert "a line" in one.log_tail()[-1]
        assert not any("a line" in line for line in two.log_tail())
    assert caplog.records == []
    assert (logger.level, logger.propagate, logger.handlers, logger.parent) == before
    logging.getLogger("odradek.test").info("below the level of the process")
    logging.getLogger("odradek.test").warning("of the process")
    assert [record.message for record in caplog.records] == ["of the process"]


def test_a_tail_is_cut_at_a_mark():
    with Broker() as broker:
        logger = logging.getLogger("odradek.test")
        broker.look(lambda node: logger.info("before"))
        mark = broker.log_mark()
        assert broker.log_tail(mark) == []
        broker.look(lambda node: [logger.info("after %d", i) for i in range(500)])
        assert len(broker.log_tail(mark)) == len(broker.log_tail()) == 200
        mark = broker.log_mark()
        broker.look(lambda node: logger.info("last"))
        (line,) = broker.log_tail(mark)
        assert "last" in line


def test_the_brokers_log_is_not_the_tests(run):
    result = run(
        """
import logging
import confluent_kafka

def work(kafka):
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": kafka.group()}
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([kafka.topic()])
    while not consumer.assignment():
        consumer.poll(0.05)
    consumer.close()

def test_quiet(kafka, caplog):
    work(kafka)
    assert caplog.records == []

def test_quiet_at_a_lower_level(kafka, caplog):
    caplog.set_level(logging.INFO)
    work(kafka)
    assert caplog.records == []

def test_asked_for(kafka, caplog):
    logging.getLogger("odradek").addHandler(caplog.handler)
    try:
        work(kafka)
    finally:
        logging.getLogger("odradek").removeHandler(caplog.handler)
    assert caplog.records != []

def test_fails(kafka):
    work(kafka)
    assert False
"""
    )
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["broker log:", "*INFO*Stabilized group*"])
    result.stdout.no_fnmatch_line("*Captured log*")
