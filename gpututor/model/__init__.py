"""What an operator costs on a card and a host: plain arithmetic, without torch."""
