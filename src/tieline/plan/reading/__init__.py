"""Where instances come from: our own documents, GraphML, SNDlib, topohub, and subscriptions with wildcards."""
