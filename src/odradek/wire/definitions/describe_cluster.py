"""Layout of describe_cluster by version, in the notation of wire/schema.py."""

REQUEST = """
DescribeClusterRequest 0-2 flexible 0+
  include_cluster_authorized_operations: bool
  endpoint_type: int8 1+ = 1
  include_fenced_brokers: bool 2+
"""

RESPONSE = """
DescribeClusterResponse 0-2 flexible 0+
  throttle_time: int32
  error_code: int16
  error_message: string null = null
  endpoint_type: int8 1+ = 1
  cluster_id: string
  controller_id: int32 = -1
  brokers: []DescribeClusterBroker
    broker_id: int32
    host: string
    port: int32
    rack: string null = null
    is_fenced: bool 2+
  cluster_authorized_operations: int32 = -2147483648
"""
