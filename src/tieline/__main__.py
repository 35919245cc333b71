"""``python -m tieline`` is the ``tieline`` command."""

from tieline.cli.main import main

main()
