"""The version, written once: the package metadata, the command line and ``$SYS`` read it here."""

__version__ = "0.1.0"
