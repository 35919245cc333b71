"""Virtual time: a clock, links and clients that drive the broker's own core; and worlds made of physics and a seed."""
