"""A write in another producer's name must not hold up that producer's transactions."""

from odradek.testing.broker import Broker
from tests.support.batches import batch
from tests.support.produce import produce
from tests.support.raw import Connection
from tests.support.topics import create_topic
from tests.support.transactions import TransactionalProducer


def test_a_forged_epoch_does_not_hold_up_the_end_of_a_transaction():
    with Broker() as broker:
        create_topic(broker.bootstrap_servers, "t", 2)
        with (
            TransactionalProducer(broker.bootstrap_servers, "x", epoch_per_transaction=False) as producer,
            Connection(broker.bootstrap_servers) as stranger,
        ):
            producer.init()
            assert producer.add("t", 0) == [0]  # added, not written to: nothing is open there
            assert producer.produce("t", b"mine", partition=1).error_code == 0
            forged = batch(
                [b"forged"],
                producer_id=producer.producer_id,
                producer_epoch=producer.epoch + 1,
                base_sequence=0,
            )
            assert produce(stranger, "t", forged).error_code == 0
            assert produce(stranger, "t", forged, partition=1).error_code != 0  # a transaction is open there
            assert producer.end(commit=True) == 0
            assert producer.wait_until_ended(timeout_s=5) == "CompleteCommit"
            producer.init()
            producer.run("t", b"more", partition=1)
