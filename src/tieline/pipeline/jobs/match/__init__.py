"""What subscriptions would have delivered: the broker's own matching, over tables instead of sockets."""
