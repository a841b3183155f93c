"""Reports of `eval` and `bench` as figures, tables and words: for the Evaluate tab and for a file of its own.

Everything here is pure and takes checked reports only (`evaluation.reading`). The same Plotly figures serve
the tab and the file: a second way of drawing them would be more code than the library that the file carries.
"""
