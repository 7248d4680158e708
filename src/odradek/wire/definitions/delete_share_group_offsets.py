"""Layout of delete_share_group_offsets by version, in the notation of wire/schema.py."""

REQUEST = """
DeleteShareGroupOffsetsRequest 0-0 flexible 0+
  group_id: string
  topics: []DeleteShareGroupOffsetsRequestTopic
    topic_name: string
"""

RESPONSE = """
DeleteShareGroupOffsetsResponse 0-0 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null = null
  responses: []DeleteShareGroupOffsetsResponseTopic
    topic_name: string
    topic_id: uuid
    error_code: int16
    error_message: string null = null
"""
