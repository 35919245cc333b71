"""Which records repeat an earlier one: exact for publishers that number their messages, suspected for others."""
