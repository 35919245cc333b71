"""``/v1/demand``: what the broker is asked to carry, over HTTP, for a planner on another machine.

The body of a POST is the question of the management channel, and so is the answer.
"""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response

from tieline.core.figures.demand import DemandError
from tieline.web.request import USER, read_body

PATH: Final = "/v1/demand"
#: What somebody who asks must be allowed to publish to: the answer names every client and topic.  No client can publish
#: there; it is a name for the right.
DEMAND: Final = "$SYS/broker/tieline/demand"
#: The longest question.
MOST_BODY: Final = 4_096


class Counter(Protocol):
    """What this page asks of the broker."""

    async def demand(self, question: dict[str, Any], by: str) -> dict[str, Any]:
        """Begin a count or take a portion of one; raises DemandError."""


class DemandPage:
    """Answers the questions of a planner."""

    def __init__(self, broker: Counter) -> None:
        self._broker = broker

    async def answer(self, request: Request) -> Response:
        """One question, one answer."""
        try:
            body = await read_body(request, MOST_BODY)
            if body is None:
                return PlainTextResponse(f"a question has at most {MOST_BODY:,} bytes\n", 413)
            question = msgspec.json.decode(body, type=dict[str, Any])
            return JSONResponse(await self._broker.demand(question, request.scope[USER]))
        except msgspec.DecodeError:
            return PlainTextResponse('a question is a JSON object such as {"do": "demand", "act": "begin"}\n', 400)
        except DemandError as error:
            return PlainTextResponse(f"{error}\n", 400)
        except ClientDisconnect:
            return PlainTextResponse("the question did not arrive whole\n", 400)
        except TimeoutError:
            return PlainTextResponse("the broker does not answer\n", 503)
