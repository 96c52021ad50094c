# SPDX-License-Identifier: Apache-2.0
"""Reads benchmark results and makes tables and pictures of them."""
