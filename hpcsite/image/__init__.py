"""Images of machines: root file systems, and what is made of them."""
