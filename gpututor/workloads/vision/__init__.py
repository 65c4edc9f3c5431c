"""Networks that classify pictures, one family a module; `recipes.py` trains and runs them as their benchmarks did."""
