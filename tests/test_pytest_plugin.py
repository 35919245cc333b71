"""The fixture that users of pytest get with the package."""

from __future__ import annotations

import pytest

from tests.kits.dial import dial, open_socket
from tests.kits.patience import until
from tieline import Limits, Listener, Settings
from tieline.net.listener import ListenError
from tieline.pytest_plugin import BrokerThread

pytest_plugins = ["pytester"]


def test_the_fixture_is_a_running_broker(tieline_broker: BrokerThread) -> None:
    assert tieline_broker.host == "127.0.0.1"
    with dial(tieline_broker.urls[0], "me"):
        assert tieline_broker.ask(lambda core: list(core.sessions)) == ["me"]


@pytest.mark.tieline(listen=["ws://127.0.0.1:0", "tcp://127.0.0.1:0"], name="marked")
def test_the_marker_takes_the_arguments_of_broker(tieline_broker: BrokerThread) -> None:
    assert [url.split(":")[0] for url in tieline_broker.urls] == ["ws", "tcp"]
    assert tieline_broker.ask(lambda core: core.settings.name) == "marked"


@pytest.mark.tieline(
    Settings(listener=(Listener(url="tcp://127.0.0.1:0"),), limits=Limits(topic_alias_maximum=7)),
)
def test_the_marker_takes_settings(tieline_broker: BrokerThread) -> None:
    with dial(tieline_broker.urls[0]) as client:
        client.close()
    assert tieline_broker.ask(lambda core: core.settings.limits.topic_alias_maximum) == 7


@pytest.mark.tieline(name="class")
class TestMarkedClass:
    def test_the_nearest_marker_counts(self, tieline_broker: BrokerThread) -> None:
        assert tieline_broker.ask(lambda core: core.settings.name) == "class"

    @pytest.mark.tieline(name="method")
    def test_it_is_the_methods(self, tieline_broker: BrokerThread) -> None:
        assert tieline_broker.ask(lambda core: core.settings.name) == "method"


def test_each_test_has_a_broker_of_its_own(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import socket
        import pytest

        ports = []

        @pytest.mark.parametrize("number", range(3))
        def test_fresh(tieline_broker, number):
            for port in ports:
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", port))
            ports.append(tieline_broker.port)
            socket.create_connection(("127.0.0.1", tieline_broker.port)).close()
            assert tieline_broker.ask(lambda core: len(core.sessions)) == 0
        """
    )
    pytester.runpytest("--strict-markers", "-W", "error").assert_outcomes(passed=3)


def test_paho_as_the_documentation_shows_it(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        from paho.mqtt import publish, subscribe
        import threading

        def test_talk(tieline_broker):
            where = {"hostname": tieline_broker.host, "port": tieline_broker.port}
            publish.single("greeting", "hello", retain=True, **where)
            message = subscribe.simple("greeting", **where)
            assert message.payload == b"hello"
        """
    )
    pytester.runpytest("--strict-markers", "-W", "error").assert_outcomes(passed=1)


def test_the_marker_is_listed(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--markers").stdout.fnmatch_lines(["@pytest.mark.tieline(*"])


def test_the_fixture_is_listed_with_its_meaning(pytester: pytest.Pytester) -> None:
    pytester.runpytest("--fixtures").stdout.fnmatch_lines(["tieline_broker*", "*free loopback port*"])


def test_a_broker_that_cannot_start_is_an_error_with_its_sentence(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.tieline(listen=["tcp://192.0.2.1:1883"])
        def test_elsewhere(tieline_broker):
            pass
        """
    )
    result = pytester.runpytest("--strict-markers", "-W", "error")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ListenError: cannot listen on tcp://192.0.2.1:1883: *"])


def test_loading_the_plugin_does_not_load_the_broker(pytester: pytest.Pytester) -> None:
    # whoever has the package installed has the plugin in every run of pytest, so it must cost nothing
    pytester.makepyfile(
        """
        import sys

        def test_nothing():
            assert "tieline.pytest_plugin" in sys.modules
            assert "tieline.net.server" not in sys.modules
            assert "tieline.core.broker" not in sys.modules
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_the_thread_ends_with_the_block() -> None:
    with BrokerThread() as broker:
        url = broker.urls[0]
    assert not broker._thread.is_alive()
    with pytest.raises(ConnectionRefusedError):
        open_socket(url)


def test_a_failed_start_ends_the_thread_too() -> None:
    broker = BrokerThread(listen=["tcp://192.0.2.1:1883"])
    with pytest.raises(ListenError), broker:
        pass
    until(lambda: not broker._thread.is_alive(), "the thread has ended")


def test_a_question_that_fails_fails_in_the_test() -> None:
    with BrokerThread() as broker, pytest.raises(ZeroDivisionError):
        broker.ask(lambda core: 1 // len(core.sessions))
