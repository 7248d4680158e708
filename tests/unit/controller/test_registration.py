"""Registrations of three brokers and three controllers: incarnations, features, directories, clean stops."""

from typing import Any

import pytest

from odradek.core.errors import ErrorCode
from odradek.metadata.controllers import controllers_on
from odradek.metadata.image import Endpoint
from odradek.metadata.records import FeatureLevelRecord, RegisterControllerRecord
from odradek.metadata.versions import SUPPORTED_FEATURES
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import Harness, incarnation, log_dir
from tests.unit.controller.test_brokers import change

SESSION_MS = 9000


def three_brokers(*, elr: bool = True) -> Harness:
    h = Harness(elr=elr)
    for broker_id in (1, 2, 3):
        h.start_broker(broker_id)
    return h


def features(**levels: tuple[int, int]) -> list[Any]:
    """What a broker supports: all that we do, with some changed (`x_y` for x.y)."""
    types = request_types(ApiKey.BROKER_REGISTRATION)
    given = {name.replace("_", "."): found for name, found in levels.items()}
    supported = {**{name: tuple(found) for name, found in SUPPORTED_FEATURES.items()}, **given}
    return [
        types.Feature(name=name, min_supported_version=low, max_supported_version=high)
        for name, (low, high) in supported.items()
    ]


# --- incarnations and sessions ------------------------------------------------------------------------


def test_a_broker_that_was_never_heard_from_may_be_registered_again_at_once() -> None:
    """A session begins with a heartbeat: a broker that died before that holds nobody up."""
    h = Harness()
    h.register(2, process=1)
    assert h.register(2, process=2).error_code == ErrorCode.NONE
    h.heartbeat(2)
    assert h.register(2, process=3).error_code == ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a_broker_that_stopped_cleanly_may_be_registered_again_at_once() -> None:
    """Where all nodes stop together, the last ones leave without a controller to let them go."""
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [2, 1, 3]})
    h.heartbeat(2)
    epoch = h.image.brokers[2].epoch
    assert h.register(2, process=2, previous_epoch=epoch - 1).error_code == (
        ErrorCode.DUPLICATE_BROKER_REGISTRATION
    )
    assert h.register(2, process=2, previous_epoch=epoch).error_code == ErrorCode.NONE
    assert h.image.brokers[2].fenced
    assert h.image.topics_by_name["t"].partitions[0].leader != 2


def test_epochs_of_brokers_are_never_given_twice() -> None:
    h = three_brokers()
    epochs = {broker.epoch for broker in h.image.brokers.values()}
    h.now_ms += SESSION_MS
    for broker_id in (1, 2, 3):
        epochs.add(h.register(broker_id, process=2).broker_epoch)
    assert len(epochs) == 6
    assert h.heartbeat(1, broker_epoch=min(epochs)).error_code == ErrorCode.STALE_BROKER_EPOCH


def test_zookeeper_brokers_are_not_registered() -> None:
    h = Harness()
    assert h.register(2, is_migrating_zk_broker=True).error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


# --- features -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "code"),
    [
        (features(), ErrorCode.NONE),
        (features(metadata_version=(7, 29)), ErrorCode.UNSUPPORTED_VERSION),
        (features(kraft_version=(0, 0)), ErrorCode.UNSUPPORTED_VERSION),
        (features(own_version=(0, 3)), ErrorCode.NONE),
        (features(own_version=(1, 3)), ErrorCode.UNSUPPORTED_VERSION),
        (features(group_version=(0, 0)), ErrorCode.NONE),
        ([f for f in features() if f.name != "metadata.version"], ErrorCode.INVALID_REGISTRATION),
        (
            [f for f in features() if f.name != "eligible.leader.replicas.version"],
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        ([f for f in features() if f.name != "group.version"], ErrorCode.NONE),
    ],
)
def test_a_broker_must_support_what_is_finalized_and_level_0_of_everything_else(
    given: list[Any], code: ErrorCode
) -> None:
    h = Harness()
    assert h.register(2, features=given).error_code == code


# --- directories --------------------------------------------------------------------------------------


def test_before_directories_were_known_nobody_has_to_name_any() -> None:
    h = Harness()
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=16)])
    assert h.register(2, log_dirs=[]).error_code == ErrorCode.NONE
    assert h.register(3, log_dirs=[log_dir(3)]).error_code == ErrorCode.NONE
    assert h.image.brokers[3].log_dirs == ()


def test_a_directory_belongs_to_one_broker() -> None:
    h = three_brokers()
    assert h.register(4, log_dirs=[log_dir(3)]).error_code == ErrorCode.INVALID_REGISTRATION
    assert h.register(3, log_dirs=[log_dir(3), log_dir(7)]).error_code == ErrorCode.NONE
    assert h.image.brokers[3].log_dirs == (log_dir(3), log_dir(7))


# --- previous_broker_epoch and the eligible leaders ---------------------------------------------------


def fenced_in_elr() -> Harness:
    """Broker 2 left the ISR while it was complete."""
    h = three_brokers()
    h.create("t", -1, -1, assignments={0: [1, 2, 3]}, configs={"min.insync.replicas": "3"})
    h.now_ms += SESSION_MS - 1
    h.heartbeat(1)
    h.heartbeat(3)
    h.now_ms += 1
    assert h.expire() == 2
    assert h.image.topics_by_name["t"].partitions[0].elr == (2,)
    return h


def test_a_clean_stop_leaves_a_broker_among_the_eligible_leaders() -> None:
    h = fenced_in_elr()
    h.register(2, process=2, previous_epoch=h.image.brokers[2].epoch)
    assert h.kinds() == ["RegisterBrokerRecord"]
    assert h.image.topics_by_name["t"].partitions[0].elr == (2,)


def test_an_unclean_stop_takes_a_broker_out_of_the_eligible_leaders() -> None:
    h = fenced_in_elr()
    h.register(2, process=2, previous_epoch=h.image.brokers[2].epoch - 1)
    assert h.kinds() == ["PartitionChangeRecord", "RegisterBrokerRecord"]
    assert change(h.records[0]) == {"elr": ()}


def test_a_broker_that_was_unregistered_comes_back_as_one_that_lost_its_records() -> None:
    h = fenced_in_elr()
    types = request_types(ApiKey.UNREGISTER_BROKER)
    assert h.call(ApiKey.UNREGISTER_BROKER, types.UnregisterBrokerRequest(broker_id=2)).error_code == 0
    h.register(2, process=2)
    assert h.image.topics_by_name["t"].partitions[0].elr == ()


# --- controllers --------------------------------------------------------------------------------------


def register_controller(h: Harness, node_id: int, process: int = 1, given: Any = None) -> Any:
    types = request_types(ApiKey.CONTROLLER_REGISTRATION)
    rows = features() if given is None else given
    request = types.ControllerRegistrationRequest(
        controller_id=node_id,
        incarnation_id=incarnation(process),
        listeners=[types.Listener(name="CONTROLLER", host=f"c{node_id}", port=9090 + node_id)],
        features=[
            types.Feature(
                name=f.name,
                min_supported_version=f.min_supported_version,
                max_supported_version=f.max_supported_version,
            )
            for f in rows
        ],
    )
    return h.call(ApiKey.CONTROLLER_REGISTRATION, request)


def test_controllers_are_registered_with_their_newest_incarnation() -> None:
    h = Harness()
    for node_id in (3, 1, 2):
        assert register_controller(h, node_id).error_code == ErrorCode.NONE
        assert [type(r) for r in h.records] == [RegisterControllerRecord]
    register_controller(h, 2, process=5)
    assert h.image.controllers[2].incarnation_id == incarnation(5)
    assert controllers_on(h.image, "CONTROLLER") == {
        1: Endpoint("c1", 9091, 0),
        2: Endpoint("c2", 9092, 0),
        3: Endpoint("c3", 9093, 0),
    }
    assert controllers_on(h.image, "OTHER") == {}


def test_an_old_metadata_version_knows_no_controllers() -> None:
    h = Harness()
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=14)])
    assert register_controller(h, 2).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert h.image.controllers == {}


# --- features of all of them --------------------------------------------------------------------------


def update(h: Harness, feature: str, level: int, upgrade_type: int = 1) -> tuple[int, str]:
    types = request_types(ApiKey.UPDATE_FEATURES)
    row = types.FeatureUpdateKey(feature=feature, max_version_level=level, upgrade_type=upgrade_type)
    answer = h.call(ApiKey.UPDATE_FEATURES, types.UpdateFeaturesRequest(feature_updates=[row]))
    reason = (answer.error_message or "").partition(f"for feature {feature}. ")[2]
    return answer.error_code, reason


def test_one_broker_that_does_not_support_a_level_is_enough_to_refuse_it() -> None:
    h = three_brokers()
    h.register(3, features=features(share_version=(0, 0)))
    assert update(h, "share.version", 1) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "Broker 3 does not support this feature.",
    )
    h.register(3, features=features(transaction_version=(0, 1)))
    assert update(h, "transaction.version", 2) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "Broker 3 only supports versions 0-1",
    )
    h.register(3, features=features(metadata_version=(30, 30)))
    assert update(h, "metadata.version", 29, upgrade_type=2)[1] == "Broker 3 only supports versions 30"
    h.register(3, features=features())
    assert update(h, "transaction.version", 2) == (ErrorCode.NONE, "")


def test_a_fenced_broker_must_support_the_level_too() -> None:
    h = three_brokers()
    h.register(4, features=features(share_version=(0, 0)))
    assert update(h, "share.version", 1)[1] == "Broker 4 does not support this feature."


def test_one_controller_that_does_not_support_a_level_is_enough_to_refuse_it() -> None:
    h = three_brokers()
    register_controller(h, 2)
    register_controller(h, 3, given=features(share_version=(0, 0)))
    assert update(h, "share.version", 1) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "Controller 3 does not support this feature.",
    )


def test_a_level_of_0_needs_no_support() -> None:
    h = three_brokers()
    assert update(h, "share.version", 1)[0] == ErrorCode.NONE
    h.register(3, features=features())
    register_controller(h, 3, given=[f for f in features() if f.name != "share.version"])
    assert update(h, "share.version", 0, upgrade_type=2)[0] == ErrorCode.NONE


def test_a_voter_that_has_not_registered_may_not_support_it() -> None:
    h = three_brokers()
    h.controller.voter_ids = (1, 2, 3)
    register_controller(h, 3)
    assert update(h, "share.version", 1) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "controller 2 has not registered, and may not support this feature",
    )
    register_controller(h, 2)
    assert update(h, "share.version", 1)[0] == ErrorCode.NONE


def test_eligible_leader_replicas_depend_on_the_metadata_version() -> None:
    h = three_brokers(elr=False)
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=22)])
    assert update(h, "eligible.leader.replicas.version", 1) == (
        ErrorCode.INVALID_UPDATE_VERSION,
        "eligible.leader.replicas.version could not be set to 1 because it depends on metadata.version level "
        "23",
    )
    h.apply([FeatureLevelRecord(name="metadata.version", feature_level=23)])
    assert update(h, "eligible.leader.replicas.version", 1)[0] == ErrorCode.NONE
