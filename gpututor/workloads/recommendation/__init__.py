"""What somebody may like."""
