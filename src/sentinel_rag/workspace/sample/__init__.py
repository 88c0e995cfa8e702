"""The sample estate: a small company's weeks in Sentinel, generated from a seed.

Others use `EstateOptions` of `options`, `EstateGuide` of `guide` and `generate_estate` of `generate`.
"""
