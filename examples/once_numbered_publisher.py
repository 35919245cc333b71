"""A job that fails in the middle and begins anew publishes nothing twice.

Each message says who made it and which one it is, in the user property ``$once``; the broker remembers the highest
number of each producer, with ``data=`` also across restarts.

It prints::

    first attempt, up to number 4
    second attempt, up to number 9
    the archive got 10 messages: 0 1 2 3 4 5 6 7 8 9
    repeated and ignored: 5
"""

import asyncio

import aiomqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

import tieline
from tieline.core.account import Drop


async def publish(port: int, numbers: range) -> None:
    async with aiomqtt.Client("127.0.0.1", port, protocol=aiomqtt.ProtocolVersion.V5) as job:
        for number in numbers:
            properties = Properties(PacketTypes.PUBLISH)
            properties.UserProperty = ("$once", f"nightly-job/{number}")
            await job.publish("archive/row", str(number), qos=1, properties=properties)


async def main() -> None:
    async with tieline.Broker() as broker, aiomqtt.Client("127.0.0.1", broker.port) as archive:
        await archive.subscribe("archive/#", qos=2)
        print("first attempt, up to number 4")
        await publish(broker.port, range(5))
        print("second attempt, up to number 9")
        await publish(broker.port, range(10))
        messages = aiter(archive.messages)
        got = [(await anext(messages)).payload.decode() for _ in range(10)]
        print(f"the archive got {len(got)} messages: {' '.join(got)}")
        print("repeated and ignored:", broker.core.account.drops[Drop.REPEATED])


asyncio.run(main())
