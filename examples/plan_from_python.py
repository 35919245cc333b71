"""Which topic travels over which link, decided and proven from a program.

It needs the extra ``tieline[plan]``.  The first run after an installation compiles for a while.

It prints::

    optimal: 3 of 4 requests served
    pv/7/power: hill - dam
    pv/7/video: hill - mill, mill - dam
    meter/2 does not reach archive: saturated
    the full links on its way: hill - dam, hill - mill
"""

from tieline.plan.explain import explain
from tieline.plan.proof import proven
from tieline.plan.reading.document import parse
from tieline.plan.solve import solve

VILLAGES = parse("""
{"format": "tieline-instance-1", "name": "two-villages",
 "nodes": [{"id": "hill", "roles": ["broker"]}, {"id": "mill", "roles": ["broker"]}, {"id": "dam", "roles": ["broker"]},
           {"id": "pv-7", "roles": ["publisher"]}, {"id": "meter-2", "roles": ["publisher"]},
           {"id": "control", "roles": ["subscriber"]}, {"id": "archive", "roles": ["subscriber"]}],
 "links": [{"a": "hill", "b": "mill", "capacity": 10, "cost": 1}, {"a": "mill", "b": "dam", "capacity": 10, "cost": 1},
           {"a": "hill", "b": "dam", "capacity": 4, "cost": 1},
           {"a": "pv-7", "b": "hill", "capacity": "none", "cost": 0},
           {"a": "meter-2", "b": "hill", "capacity": "none", "cost": 0},
           {"a": "control", "b": "dam", "capacity": "none", "cost": 0},
           {"a": "archive", "b": "dam", "capacity": "none", "cost": 0}],
 "topics": [{"id": "pv/7/power", "source": "pv-7", "rate": 4, "subscribers": ["control", "archive"]},
            {"id": "pv/7/video", "source": "pv-7", "rate": 9, "subscribers": ["control"]},
            {"id": "meter/2", "source": "meter-2", "rate": 3, "subscribers": ["archive"]}]}
""")

plan = proven(VILLAGES, solve(VILLAGES, seconds=20))
requests = sum(len(topic.subscribers) for topic in VILLAGES.topics)
print(f"{plan.status}: {requests - plan.unmet} of {requests} requests served")
brokers = {node.id for node in VILLAGES.nodes if "broker" in node.roles}
for route in plan.routes:
    hops = [f"{hop.tail} - {hop.head}" for hop in route.links if {hop.tail, hop.head} <= brokers]
    if hops:
        print(f"{route.topic}: {', '.join(hops)}")
for topic, subscriber in plan.unmet_requests():
    why = explain(VILLAGES, plan, topic=topic, subscriber=subscriber)
    print(f"{topic} does not reach {subscriber}: {why.reason}")
    print("the full links on its way:", ", ".join(sorted(f"{link.a} - {link.b}" for link in why.links)))
