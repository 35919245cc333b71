"""Instances from a seed: geometric meshes of any size, clients and topics for a given network, the paper's test set."""
