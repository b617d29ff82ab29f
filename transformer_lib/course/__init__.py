"""What only the book needs: exercises and their checks, explorers, the look of its figures.

It stands above the rest of the library: cells of the book import it, the library never does.
"""
