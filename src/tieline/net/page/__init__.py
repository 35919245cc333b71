"""What a broker tells the live page: numbers of each second, a verdict, and what needs attention."""
