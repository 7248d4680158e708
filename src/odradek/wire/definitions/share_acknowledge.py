"""Layout of share_acknowledge by version, in the notation of wire/schema.py."""

REQUEST = """
ShareAcknowledgeRequest 1-2 flexible 1+
  group_id: string null = null
  member_id: string null
  share_session_epoch: int32
  is_renew_ack: bool 2+
  topics: []AcknowledgeTopic
    topic_id: uuid
    partitions: []AcknowledgePartition
      partition_index: int32
      acknowledgement_batches: []AcknowledgementBatch
        first_offset: int64
        last_offset: int64
        acknowledge_types: []int8
"""

RESPONSE = """
ShareAcknowledgeResponse 1-2 flexible 1+
  throttle_time: int32
  error_code: int16
  error_message: string null = null
  acquisition_lock_timeout: int32 2+
  responses: []ShareAcknowledgeTopicResponse
    topic_id: uuid
    partitions: []PartitionData
      partition_index: int32
      error_code: int16
      error_message: string null = null
      current_leader: LeaderIdAndEpoch
        leader_id: int32
        leader_epoch: int32
  node_endpoints: []NodeEndpoint
    node_id: int32
    host: string
    port: int32
    rack: string null = null
"""
