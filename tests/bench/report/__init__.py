"""Reads benchmark results and makes tables and pictures of them."""
