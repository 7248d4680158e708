"""What well-known Grafana boards ask a Kafka broker: each metric, and the labels they filter or group it by.

Labels that a scraper adds (namespace, pod, cluster) are left out: no broker knows them.
"""

from typing import NamedTuple


class Query(NamedTuple):
    metric: str
    labels: tuple[str, ...] = ()


_TOPIC = ("topic",)
_PARTITION = ("topic", "partition")
_KUBERNETES = (
    Query("container_memory_usage_bytes"),
    Query("container_cpu_usage_seconds_total"),
    Query("kubelet_volume_stats_available_bytes"),
)
_JVM = (
    Query("jvm_memory_used_bytes"),
    Query("jvm_gc_collection_seconds_sum"),
    Query("jvm_gc_collection_seconds_count"),
    Query("jvm_threads_current"),
)

BOARDS = {
    "strimzi-kafka": (
        Query("kafka_server_replicamanager_leadercount"),
        Query("kafka_server_replicamanager_partitioncount"),
        Query("kafka_server_replicamanager_underreplicatedpartitions"),
        Query("kafka_controller_kafkacontroller_activecontrollercount"),
        Query("kafka_controller_kafkacontroller_offlinepartitionscount"),
        Query("kafka_controller_controllerstats_uncleanleaderelections_total"),
        Query("kafka_cluster_partition_replicascount", _PARTITION),
        Query("kafka_cluster_partition_atminisr", _PARTITION),
        Query("kafka_cluster_partition_underminisr", _PARTITION),
        Query("kafka_server_brokertopicmetrics_bytesin_total", _TOPIC),
        Query("kafka_server_brokertopicmetrics_bytesout_total", _TOPIC),
        Query("kafka_server_brokertopicmetrics_messagesin_total", _TOPIC),
        Query("kafka_server_brokertopicmetrics_totalproducerequests_total", _TOPIC),
        Query("kafka_server_brokertopicmetrics_failedproducerequests_total", _TOPIC),
        Query("kafka_server_brokertopicmetrics_totalfetchrequests_total", _TOPIC),
        Query("kafka_server_brokertopicmetrics_failedfetchrequests_total", _TOPIC),
        Query("kafka_network_socketserver_networkprocessoravgidle_percent"),
        Query("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent"),
        Query("kafka_server_kafkaserver_linux_disk_read_bytes"),
        Query("kafka_server_kafkaserver_linux_disk_write_bytes"),
        Query("kafka_server_socket_server_metrics_connection_count", ("listener",)),
        Query("kafka_log_log_size", _PARTITION),
        Query("process_open_fds"),
        *_JVM,
        *_KUBERNETES,
    ),
    "strimzi-kraft": (
        Query("kafka_server_raftmetrics_current_state", ("current_state",)),
        Query("kafka_server_raftmetrics_current_leader"),
        Query("kafka_server_raftmetrics_current_vote"),
        Query("kafka_server_raftmetrics_current_epoch"),
        Query("kafka_server_raftmetrics_high_watermark"),
        Query("kafka_server_raftmetrics_log_end_offset"),
        Query("kafka_server_raftmetrics_append_records_rate"),
        Query("kafka_server_raftmetrics_fetch_records_rate"),
        Query("kafka_server_raftmetrics_commit_latency_avg"),
        Query("kafka_server_raftchannelmetrics_incoming_byte_total"),
        Query("kafka_server_raftchannelmetrics_outgoing_byte_total"),
        Query("kafka_server_raftchannelmetrics_request_total"),
        Query("kafka_server_raftchannelmetrics_response_total"),
        Query("process_open_fds"),
        *_JVM,
        *_KUBERNETES,
    ),
    "kafka_exporter": (
        Query("kafka_brokers"),
        Query("kafka_broker_info", ("id", "address")),
        Query("kafka_topic_partitions", _TOPIC),
        Query("kafka_topic_partition_replicas", _PARTITION),
        Query("kafka_topic_partition_in_sync_replica", _PARTITION),
        Query("kafka_topic_partition_under_replicated_partition", _PARTITION),
        Query("kafka_topic_partition_leader_is_preferred", _PARTITION),
        Query("kafka_topic_partition_current_offset", _PARTITION),
        Query("kafka_topic_partition_oldest_offset", _PARTITION),
        Query("kafka_cluster_partition_atminisr", _PARTITION),
        Query("kafka_cluster_partition_underminisr", _PARTITION),
        Query("kafka_consumergroup_current_offset", ("consumergroup", *_PARTITION)),
        Query("kafka_consumergroup_lag", ("consumergroup", *_PARTITION)),
    ),
}
