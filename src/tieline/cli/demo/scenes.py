"""The scenes of the demonstration: each lets real clients do one thing and checks what arrived, message by message."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any  # Any: paho's callbacks have no types

from paho.mqtt.client import MQTTMessage
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from tieline.cli.demo.actors import PATIENCE_S, Actor


@dataclass(frozen=True, slots=True, kw_only=True)
class SceneResult:
    """What one scene showed."""

    title: str
    story: str
    sent: int
    expected: int
    arrived: int
    is_right: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """The broker's addresses and the two clients that stay through the whole demonstration."""

    port: int
    ws_port: int
    sensor: Actor
    dashboard: Actor


def quality_of_service(stage: Stage) -> SceneResult:
    """Numbered messages at each QoS: all of them, once each, in order."""
    count = 300
    stage.dashboard.subscribe("plant/+/power", 2)
    for number in range(count):
        for qos in (0, 1, 2):
            stage.sensor.publish(f"plant/{qos}/power", str(number), qos)
    stage.sensor.settle()
    stage.dashboard.wait_for(3 * count)
    arrived = stage.dashboard.linger()
    in_order = all(
        [message.payload for message in arrived if message.topic == f"plant/{qos}/power"]
        == [str(number).encode() for number in range(count)]
        and all(message.qos == qos for message in arrived if message.topic == f"plant/{qos}/power")
        for qos in (0, 1, 2)
    )
    return SceneResult(
        title="QoS 0, 1 and 2",
        story="sensor (3.1.1) → dashboard (5): every message once, in order, at the QoS it was sent with",
        sent=3 * count,
        expected=3 * count,
        arrived=len(arrived),
        is_right=in_order,
    )


def retained(stage: Stage) -> SceneResult:
    """A subscriber that comes late still learns the last state."""
    for state in ("starting", "running"):
        stage.sensor.publish("plant/state", state, 1, retain=True)
    stage.sensor.settle()
    late = Actor("latecomer", port=stage.port)
    late.subscribe("plant/state", 1)
    late.wait_for(1)
    arrived = late.linger()
    late.leave()
    return SceneResult(
        title="Retained message",
        story="latecomer subscribes afterwards and is told the last state only",
        sent=2,
        expected=1,
        arrived=len(arrived),
        is_right=[(message.payload, message.retain) for message in arrived] == [(b"running", True)],
    )


def will(stage: Stage) -> SceneResult:
    """A client that vanishes leaves a message behind; one that says goodbye does not."""
    stage.dashboard.forget()
    stage.dashboard.subscribe("alarm/#", 1)
    polite = Actor("polite", port=stage.port, version=4, will=("alarm/polite", "lost"))
    fragile = Actor("fragile", port=stage.port, version=4, will=("alarm/fragile", "lost"))
    polite.leave()
    fragile.die()
    stage.dashboard.wait_for(1)
    arrived = stage.dashboard.linger()
    return SceneResult(
        title="Will",
        story="fragile vanishes and its will is published; polite disconnects and its will is not",
        sent=1,
        expected=1,
        arrived=len(arrived),
        is_right=[(message.topic, message.payload) for message in arrived] == [("alarm/fragile", b"lost")],
    )


def shared_subscription(stage: Stage) -> SceneResult:
    """A team shares the work: each job goes to exactly one of them."""
    count = 300
    team = [Actor(f"worker-{number}", port=stage.port, version=5 if number else 4) for number in range(3)]
    for worker in team:
        worker.subscribe("$share/team/jobs/#", 1)
    for number in range(count):
        stage.sensor.publish(f"jobs/{number}", str(number), 1)
    stage.sensor.settle()
    _wait_for_all(team, count)
    shares = [len(worker.linger(0.05)) for worker in team]
    done = sorted(int(message.payload) for worker in team for message in worker.received)
    for worker in team:
        worker.leave()
    return SceneResult(
        title="Shared subscription",
        story=f"three workers share $share/team/jobs/#: {' + '.join(map(str, shares))} jobs, none done twice",
        sent=count,
        expected=count,
        arrived=sum(shares),
        is_right=done == list(range(count)) and min(shares) > 0,
    )


def kept_session(stage: Stage) -> SceneResult:
    """Messages wait for a client that is away."""
    count = 100
    away = Actor("commuter", port=stage.port, version=4, is_clean=False)
    away.subscribe("mail/#", 1)
    away.leave()
    for number in range(count):
        stage.sensor.publish("mail/inbox", str(number), 1)
    stage.sensor.settle()
    back = Actor("commuter", port=stage.port, version=4, is_clean=False)
    back.wait_for(count)
    arrived = back.linger()
    back.leave()
    Actor("commuter", port=stage.port, version=4, is_clean=True).leave()
    return SceneResult(
        title="Kept session",
        story="commuter (3.1.1) is away while messages are sent, and finds all of them in order",
        sent=count,
        expected=count,
        arrived=len(arrived),
        is_right=[int(message.payload) for message in arrived] == list(range(count)),
    )


def request_and_response(stage: Stage) -> SceneResult:
    """MQTT 5 properties travel unaltered; a phone over WebSocket asks, the dashboard answers."""
    stage.dashboard.forget()
    stage.dashboard.subscribe("ask/#", 1)
    phone = Actor("phone", port=stage.ws_port, transport="websockets")
    phone.subscribe("answer/phone", 1)
    marks = {"CorrelationData": b"\x00\x01\x02", "UserProperty": [("unit", "kW"), ("unit", "kVA"), ("who", "phone")]}
    phone.publish("ask/power", "?", 1, properties=_properties(ResponseTopic="answer/phone", **marks))
    answers: list[MQTTMessage] = []
    for question in stage.dashboard.wait_for(1):
        seen = _seen(question)
        back = seen.pop("ResponseTopic", "lost")
        stage.dashboard.publish(back, "42", 1, properties=_properties(**seen))
        answers = phone.wait_for(1)
    phone.leave()
    return SceneResult(
        title="Request and response",
        story="phone (5, WebSocket) asks, dashboard answers; correlation data and user properties unaltered",
        sent=2,
        expected=2,
        arrived=len(stage.dashboard.linger()) + len(answers),
        is_right=[(answer.payload, _seen(answer)) for answer in answers] == [(b"42", marks)],
    )


def content(stage: Stage) -> SceneResult:
    """A client asks for some of what is said, and the broker reads along."""
    stage.dashboard.forget()
    stage.dashboard.subscribe("grid/+/pcc?voltage<207")
    voltages = [200 + number % 20 for number in range(200)]
    for number, voltage in enumerate(voltages):
        stage.sensor.publish(f"grid/{number % 3}/pcc", json.dumps({"number": number, "voltage": voltage}), 1)
    stage.sensor.settle()
    wanted = [number for number, voltage in enumerate(voltages) if voltage < 207]
    stage.dashboard.wait_for(len(wanted))
    arrived = stage.dashboard.linger()
    return SceneResult(
        title="Content",
        story="dashboard subscribes to grid/+/pcc?voltage<207: those messages, and no others",
        sent=len(voltages),
        expected=len(wanted),
        arrived=len(arrived),
        is_right=[json.loads(message.payload)["number"] for message in arrived] == wanted,
    )


def _properties(**values: Any) -> Properties:
    made = Properties(PacketTypes.PUBLISH)
    for name, value in values.items():
        setattr(made, name, value)
    return made


def _seen(message: MQTTMessage) -> dict[str, Any]:
    """The properties that a message carries and this scene cares about."""
    names = ("ResponseTopic", "CorrelationData", "UserProperty")
    return {name: getattr(message.properties, name) for name in names if hasattr(message.properties, name)}


def _wait_for_all(team: list[Actor], count: int) -> None:
    """Until the team together has ``count`` messages: any one of them may be the one to receive the last."""
    deadline = time.monotonic() + PATIENCE_S
    while sum(len(worker.received) for worker in team) < count and time.monotonic() < deadline:
        time.sleep(0.01)


SCENES: tuple[Callable[[Stage], SceneResult], ...] = (
    quality_of_service,
    retained,
    will,
    shared_subscription,
    kept_session,
    request_and_response,
    content,
)
