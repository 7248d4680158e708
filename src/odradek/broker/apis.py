"""The APIs that this broker serves, with their versions: the table for ApiVersions.

Each row has a file `broker/handlers/<name>.py`. The versions are those that Apache Kafka 4.3.1 advertises.
Produce is advertised from v0, as in Apache, because librdkafka turns compression off otherwise. But v0-v2 are
refused (`REFUSED_BELOW`).
"""

from typing import NamedTuple

from odradek.wire.api_keys import ApiKey


class Versions(NamedTuple):
    min: int
    max: int


SERVED: dict[ApiKey, Versions] = {
    ApiKey.PRODUCE: Versions(0, 13),
    ApiKey.FETCH: Versions(4, 18),
    ApiKey.LIST_OFFSETS: Versions(1, 11),
    ApiKey.METADATA: Versions(0, 13),
    ApiKey.OFFSET_COMMIT: Versions(2, 10),
    ApiKey.OFFSET_FETCH: Versions(1, 10),
    ApiKey.FIND_COORDINATOR: Versions(0, 6),
    ApiKey.JOIN_GROUP: Versions(0, 9),
    ApiKey.HEARTBEAT: Versions(0, 4),
    ApiKey.LEAVE_GROUP: Versions(0, 5),
    ApiKey.SYNC_GROUP: Versions(0, 5),
    ApiKey.DESCRIBE_GROUPS: Versions(0, 6),
    ApiKey.LIST_GROUPS: Versions(0, 5),
    ApiKey.API_VERSIONS: Versions(0, 4),
    ApiKey.CREATE_TOPICS: Versions(2, 7),
    ApiKey.DELETE_TOPICS: Versions(1, 6),
    ApiKey.DELETE_RECORDS: Versions(0, 2),
    ApiKey.INIT_PRODUCER_ID: Versions(0, 6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: Versions(2, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: Versions(0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: Versions(0, 4),
    ApiKey.END_TXN: Versions(0, 5),
    ApiKey.WRITE_TXN_MARKERS: Versions(1, 2),
    ApiKey.TXN_OFFSET_COMMIT: Versions(0, 5),
    ApiKey.DESCRIBE_ACLS: Versions(1, 3),
    ApiKey.CREATE_ACLS: Versions(1, 3),
    ApiKey.DELETE_ACLS: Versions(1, 3),
    ApiKey.DESCRIBE_CONFIGS: Versions(1, 4),
    ApiKey.ALTER_CONFIGS: Versions(0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: Versions(1, 2),
    ApiKey.DESCRIBE_LOG_DIRS: Versions(1, 5),
    ApiKey.CREATE_PARTITIONS: Versions(0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: Versions(1, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: Versions(1, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: Versions(1, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: Versions(1, 3),
    ApiKey.DELETE_GROUPS: Versions(0, 2),
    ApiKey.ELECT_LEADERS: Versions(0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: Versions(0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: Versions(0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: Versions(0, 0),
    ApiKey.OFFSET_DELETE: Versions(0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Versions(0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: Versions(0, 0),
    ApiKey.DESCRIBE_QUORUM: Versions(0, 2),
    ApiKey.UPDATE_FEATURES: Versions(0, 2),
    ApiKey.DESCRIBE_CLUSTER: Versions(0, 2),
    ApiKey.DESCRIBE_PRODUCERS: Versions(0, 0),
    ApiKey.UNREGISTER_BROKER: Versions(0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: Versions(0, 0),
    ApiKey.LIST_TRANSACTIONS: Versions(0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: Versions(0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: Versions(0, 1),
    ApiKey.LIST_CONFIG_RESOURCES: Versions(0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: Versions(0, 0),
}

REFUSED_BELOW: dict[ApiKey, int] = {ApiKey.PRODUCE: 3}


def is_served(api_key: int, version: int) -> bool:
    try:
        key = ApiKey(api_key)
    except ValueError:
        return False
    versions = SERVED.get(key)
    return versions is not None and max(versions.min, REFUSED_BELOW.get(key, 0)) <= version <= versions.max
