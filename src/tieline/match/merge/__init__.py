"""Many boxes said in fewer words: merged exactly, merged with a bounded error, or summed up in a digest."""
