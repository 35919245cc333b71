"""Messages from end to end: numbered streams, custody on every hop, credit, and what must survive."""
