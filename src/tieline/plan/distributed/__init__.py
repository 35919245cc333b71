"""Planning without a centre: brokers that know their own links and what their neighbours tell them."""
