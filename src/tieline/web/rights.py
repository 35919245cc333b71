"""What a route takes of whoever asks: the rights of HTTP are those that the rules of MQTT name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Right:
    """Nothing, or to be allowed something that the rules of MQTT name."""

    #: A filter to subscribe to, or a topic to publish to; no client publishes there, it is a name for the right.
    subject: str = ""
    action: Literal["none", "subscribe", "publish"] = "none"


#: What somebody who gives a table must be allowed to publish to, who asks for demand, and who asks about clients: the
#: answers name every client and topic.
HEAT: Final = "$SYS/broker/tieline/heat"
DEMAND: Final = "$SYS/broker/tieline/demand"
ASK: Final = "$SYS/broker/tieline/ask"

#: Whether the broker is alive is nobody's secret, and neither is what the page is made of.
PUBLIC: Final = Right()
#: Pages about the broker show what ``$SYS`` does.
SEE: Final = Right("$SYS/#", "subscribe")
#: To change what counts as hot, to hear of every client and topic, and to ask about them.
GIVE_HEAT: Final = Right(HEAT, "publish")
ASK_DEMAND: Final = Right(DEMAND, "publish")
ASK_QUESTIONS: Final = Right(ASK, "publish")
