"""Speech from text: Tacotron 2 makes spectrograms, WaveGlow makes sound of them."""
