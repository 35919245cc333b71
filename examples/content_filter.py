"""A subscription that says what it wants: only voltages below 207 V, and only when the mode has changed.

Declare what the messages of a topic say, and any client can ask for it in its subscription.

It prints::

    low voltage: {"voltage": 201.4, "mode": "grid"}
    mode: {"voltage": 229.8, "mode": "grid"}
    mode: {"voltage": 230.3, "mode": "island"}
"""

import asyncio

import aiomqtt

import tieline
from tieline.conf.load import loads

SETTINGS = loads("""
[event.pcc]
topic = "microgrid/+/pcc"
attributes = [{ name = "voltage", bounds = [0, 400], unit = "V" }, { name = "mode", kind = "category" }]
""")
READINGS = (
    '{"voltage": 229.8, "mode": "grid"}',
    '{"voltage": 201.4, "mode": "grid"}',
    '{"voltage": 230.3, "mode": "island"}',
)


async def listen(port: int, name: str, condition: str, expected: int) -> list[str]:
    async with aiomqtt.Client("127.0.0.1", port) as client:
        await client.subscribe(f"microgrid/7/pcc?{condition}", qos=1)
        READY.release()
        heard = [await anext(aiter(client.messages)) for _ in range(expected)]
        return [f"{name}: {message.payload.decode()}" for message in heard]


async def main() -> None:
    async with tieline.Broker(SETTINGS, listen=["tcp://127.0.0.1:0"]) as broker:
        low = asyncio.create_task(listen(broker.port, "low voltage", "voltage<207", 1))
        mode = asyncio.create_task(listen(broker.port, "mode", "changed(mode)", 2))
        for _ in range(2):
            await READY.acquire()
        async with aiomqtt.Client("127.0.0.1", broker.port) as publisher:
            for reading in READINGS:
                await publisher.publish("microgrid/7/pcc", reading, qos=1)
        print(*await low, *await mode, sep="\n")


READY = asyncio.Semaphore(0)
asyncio.run(main())
