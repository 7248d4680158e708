"""Layout of broker_registration by version, in the notation of wire/schema.py."""

REQUEST = """
BrokerRegistrationRequest 0-4 flexible 0+
  broker_id: int32
  cluster_id: string
  incarnation_id: uuid
  listeners: []Listener
    name: string
    host: string
    port: uint16
    security_protocol: int16
  features: []Feature
    name: string
    min_supported_version: int16
    max_supported_version: int16
  rack: string null
  is_migrating_zk_broker: bool 1+
  log_dirs: []uuid 2+
  previous_broker_epoch: int64 3+ = -1
"""

RESPONSE = """
BrokerRegistrationResponse 0-4 flexible 0+
  throttle_time: int32
  error_code: int16
  broker_epoch: int64 = -1
"""
