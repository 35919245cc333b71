"""Your own test with a real broker: installing Tieline gives pytest the fixture ``tieline_broker``.

Run it with ``pytest examples/test_alarm.py``.
"""

from paho.mqtt import publish, subscribe

from tieline.pytest_plugin import BrokerThread


def raise_alarm(host: str, port: int, node: str) -> None:
    """What is to be tested: a function of yours that talks to a broker."""
    publish.single(f"plant/{node}/alarm", "tripped", qos=1, retain=True, hostname=host, port=port)


def test_an_alarm_is_there_for_those_who_come_later(tieline_broker: BrokerThread) -> None:
    raise_alarm(tieline_broker.host, tieline_broker.port, "feeder-7")
    message = subscribe.simple("plant/+/alarm", hostname=tieline_broker.host, port=tieline_broker.port)
    assert message.topic == "plant/feeder-7/alarm"
    assert message.payload == b"tripped"
