"""`Broker` outside pytest: its settings, and the files it leaves, which are none."""

import tempfile
from pathlib import Path

import pytest

from odradek.client.blocking import BlockingClient
from odradek.core.configs import ConfigError
from odradek.testing import Broker


@pytest.fixture
def temporary(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_settings_may_be_numbers_and_truth_values():
    with Broker({"num.partitions": 3, "auto.create.topics.enable": False}) as broker:
        assert broker.config == {"num.partitions": "3", "auto.create.topics.enable": "false"}
        with BlockingClient(broker.bootstrap_servers) as client:
            client.call(client.admin.create_topics, {"t": -1})
            assert len(client.run(client.client.partitions("t"))) == 3


def test_a_broker_that_never_started_leaves_nothing(temporary):
    Broker()
    Broker().close()
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("config", "error"),
    [({"num.partition": 3}, ConfigError), ({"listeners": "PLAINTEXT://192.0.2.1:1"}, Exception)],
)
def test_a_broker_that_could_not_start_leaves_nothing(temporary, config, error):
    broker = Broker(config)
    with pytest.raises(error):
        broker.start()
    assert list(temporary.iterdir()) == []


def test_the_data_stays_while_the_broker_is_stopped_and_goes_with_it(temporary):
    broker = Broker()
    broker.start()
    assert len(list(temporary.iterdir())) == 1
    broker.stop()
    assert len(list(temporary.iterdir())) == 1
    broker.start()
    broker.close()
    assert list(temporary.iterdir()) == []


def test_a_given_directory_stays(tmp_path):
    with Broker(data_dir=str(tmp_path / "data")):
        pass
    assert (tmp_path / "data" / "meta.properties").exists()
