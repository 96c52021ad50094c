"""Reads results of the benchmarks and makes tables and pictures of them."""
