"""The sample estate: a small company's weeks in Sentinel, generated from a seed.

Others use `EstateOptions` of `options`, `EstateGuide` and `generate_estate` of `generate`.
"""
