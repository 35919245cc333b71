"""A query of your own on Spark, over the log of a broker: the lowest voltage of each node.

It needs the extras ``tieline[pipeline,java]``.  The broker keeps what it was told in its log, ``tieline log serve``
offers ranges of it to other machines, and ``format("tieline")`` reads them; ``spark.readStream`` would go on reading.

It prints::

    +----+------+--------+
    |node|lowest|messages|
    +----+------+--------+
    |n0  |201.0 |4       |
    |n1  |211.0 |4       |
    |n2  |221.0 |4       |
    +----+------+--------+
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import aiomqtt

import tieline
from tieline.conf.load import loads
from tieline.pipeline.session import BRIEF, make_session


async def publish(data: str) -> None:
    settings = loads(f'data = "{data}"\n[log]\ncapture = ["grid/#"]\n')
    async with (
        tieline.Broker(settings, listen=["tcp://127.0.0.1:0"]) as broker,
        aiomqtt.Client("127.0.0.1", broker.port) as meter,
    ):
        for number in range(12):
            reading = {"voltage": 201.0 + 10 * (number % 3) + number // 3}
            await meter.publish(f"grid/n{number % 3}", json.dumps(reading), qos=1)


def query(url: str) -> None:
    spark = make_session("lowest voltage", settings=BRIEF)
    messages = spark.read.format("tieline").option("url", url).load()
    messages.createOrReplaceTempView("messages")
    spark.sql("""
        SELECT split(topic, '/')[1] AS node,
               min(get_json_object(decode(payload, 'UTF-8'), '$.voltage')) AS lowest,
               count(*) AS messages
        FROM messages GROUP BY node ORDER BY node
    """).show(truncate=False)
    spark.stop()


with tempfile.TemporaryDirectory() as directory:
    data = Path(directory) / "data"
    data.mkdir(mode=0o700)
    asyncio.run(publish(str(data)))
    serve = [sys.executable, "-m", "tieline", "log", "serve", "--data", str(data), "--url", "http://127.0.0.1:0"]
    server = subprocess.Popen(serve, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        ready = server.stdout.readline() if server.stdout else ""
        query(next(word for word in ready.split() if word.startswith("http://")))
    finally:
        os.kill(server.pid, signal.SIGTERM)
        server.communicate()
