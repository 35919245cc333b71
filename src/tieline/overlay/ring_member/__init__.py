"""A running broker on a ring: what its clients want and publish becomes the ring's, and what comes becomes theirs.

``declared`` says what its event types mean to the ring; ``granting`` what its clients ask for, and who waits until that
is known; ``everybody`` stands for all other brokers on the routes of the core; ``arriving`` gives clients what comes;
``notes`` is what the store keeps.  ``frames`` and ``far`` are what brokers say on a link, ``links`` all of them;
``member`` puts these together around one :class:`tieline.overlay.ring.node.RingNode`.
"""
