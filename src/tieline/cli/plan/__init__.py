"""``tieline plan``: from an instance to a proven plan, and what one wants to know about either."""

from tieline.cli.plan.app import app

__all__ = ["app"]
