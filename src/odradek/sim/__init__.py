"""The simulator: nodes on virtual time with a simulated loop, network and disk, workloads and checkers.
Everything random comes from one seed."""
