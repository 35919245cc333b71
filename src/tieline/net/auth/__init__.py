"""What proves who a client is: passwords, checked beside the loop, and certificates."""
