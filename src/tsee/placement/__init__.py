"""How a row gets its position: by one pass of the network, or among its nearest exemplars; and how novel it is."""
