"""``format("tieline")``: ranges of brokers' logs as Spark reads them."""
