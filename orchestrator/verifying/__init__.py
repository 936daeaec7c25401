"""Check a sweep's folder against itself and against its raw logs.

Nothing here is shared with the code that made the numbers, so a fault of that code shows. The verb
``verify`` adds what shares it: it measures the sweep again and renders its reports again.
"""
