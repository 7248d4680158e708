"""A node's world under virtual time: loop, network, disk, cluster, workloads, checkers, all from one seed."""
