"""Other brokers as keepers of sessions: what this one asks before it lets a client in, and what it tells them."""

from __future__ import annotations

from typing import Final, Protocol

from tieline.core.client import Connection, Session
from tieline.core.ports import Refused


class Elsewhere(Protocol):
    """Who knows which broker keeps which session."""

    def seek(self, conn: Connection, now: float, *, is_clean: bool) -> Refused | None:
        """Fetch the session of a client that another broker keeps; raises Again, with the connection held, meanwhile.

        None once it is here, or is nowhere: then the client is let in.
        """

    def attached(self, session: Session, now: float, *, is_clean: bool) -> None:
        """A client was let in: whatever other brokers have under its id is over."""

    def ended(self, session: Session) -> None:
        """A session is over."""

    def restored(self, now: float) -> float:
        """The sessions of the predecessor are back; until when others may still say that they have a later one."""

    def reference(self) -> str:
        """Where a client may go that cannot stay here, as clients name servers; empty if nobody has said so."""


class Nowhere:
    """A broker that is alone keeps all sessions that there are."""

    def seek(self, conn: Connection, now: float, *, is_clean: bool) -> Refused | None:
        """There is nobody to ask."""
        return None

    def attached(self, session: Session, now: float, *, is_clean: bool) -> None:
        """There is nobody to tell."""

    def ended(self, session: Session) -> None:
        """There is nobody to tell."""

    def restored(self, now: float) -> float:
        """Nothing of them is anywhere else."""
        return now

    def reference(self) -> str:
        """There is no other place."""
        return ""


#: It has no state, so one is enough for all.
NOWHERE: Final = Nowhere()
