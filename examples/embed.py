"""A broker inside your own program: it listens while the block runs, on a free port of this machine.

It prints::

    greeting: hello
"""

import asyncio

import aiomqtt

import tieline


async def main() -> None:
    async with tieline.Broker() as broker, aiomqtt.Client("127.0.0.1", broker.port) as client:
        await client.subscribe("greeting")
        await client.publish("greeting", "hello", qos=1)
        message = await anext(aiter(client.messages))
        print(f"{message.topic}: {message.payload.decode()}")


asyncio.run(main())
