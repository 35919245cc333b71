"""An alarm overtakes the backlog of a subscriber that cannot keep up.

The subscriber takes one message at a time and acknowledges it late, so that the others wait for it in the broker.  The
level is the user property ``priority`` of MQTT 5, from 0 (bulk) to 3 (urgent); any client can send it.

It prints::

    sent: 30 readings, then an alarm
    the alarm was among the first five: True
    received: 31
"""

import asyncio
import time

from paho.mqtt.client import Client, MQTTMessage
from paho.mqtt.enums import CallbackAPIVersion, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

import tieline

READINGS = 30


def connected(port: int, name: str, *, window: int = 100) -> Client:
    client = Client(CallbackAPIVersion.VERSION2, name, protocol=MQTTProtocolVersion.MQTTv5, manual_ack=True)
    terms = Properties(PacketTypes.CONNECT)
    terms.ReceiveMaximum = window  # so many messages may be on their way to it without an acknowledgement
    client.connect("127.0.0.1", port, properties=terms)
    client.loop_start()
    return client


def at_level(level: int) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)
    properties.UserProperty = ("priority", str(level))
    return properties


def talk(port: int) -> None:
    received: list[str] = []

    def slowly(client: Client, _data: object, message: MQTTMessage) -> None:
        time.sleep(0.02)
        client.ack(message.mid, message.qos)
        received.append(message.topic)

    subscriber, publisher = connected(port, "panel", window=2), connected(port, "plant")
    subscriber.on_message = slowly
    subscriber.subscribe("plant/#", qos=1)
    time.sleep(0.2)
    for number in range(READINGS):
        publisher.publish("plant/reading", str(number), qos=1, properties=at_level(0))
    publisher.publish("plant/alarm", "tripped", qos=1, properties=at_level(3)).wait_for_publish(10)
    print(f"sent: {READINGS} readings, then an alarm")
    deadline = time.monotonic() + 30
    while len(received) <= READINGS and time.monotonic() < deadline:
        time.sleep(0.02)
    print("the alarm was among the first five:", "plant/alarm" in received[:5])
    print("received:", len(received))
    for client in (subscriber, publisher):
        client.disconnect()
        client.loop_stop()


async def main() -> None:
    async with tieline.Broker() as broker:
        await asyncio.to_thread(talk, broker.port)  # paho blocks, and the broker shares this event loop


asyncio.run(main())
