"""Layout of delete_topics by version, in the notation of wire/schema.py."""

REQUEST = """
DeleteTopicsRequest 1-6 flexible 4+
  topic_names: []string 1-5
  topics: []DeleteTopicState 6+
    name: string null = null
    topic_id: uuid
  timeout: int32
"""

RESPONSE = """
DeleteTopicsResponse 1-6 flexible 4+
  throttle_time: int32
  responses: []DeletableTopicResult
    name: string null 6+
    topic_id: uuid 6+
    error_code: int16
    error_message: string 5+ null = null
"""
