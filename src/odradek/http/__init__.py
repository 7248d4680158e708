"""The node's small HTTP face: /metrics and /healthz. Nothing below imports it; no request here is hot."""
