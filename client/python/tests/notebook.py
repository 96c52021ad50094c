# SPDX-License-Identifier: Apache-2.0
"""Runs the cells of a notebook without Jupyter, and checks the text that they print.

usage: notebook.py NOTEBOOK [--write]     --write stores the text and the figures in the notebook
"""

import base64
import contextlib
import io
import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from PIL import Image

COLORS = 256  # colors of a stored figure, to keep the file small


def lines(text):
    return text.splitlines(keepends=True)


def figures():
    """Return the open figures as outputs of a cell, and close them."""
    outputs = []
    for number in plt.get_fignums():
        drawn, small = io.BytesIO(), io.BytesIO()
        plt.figure(number).savefig(drawn, bbox_inches="tight")
        Image.open(drawn).convert("RGB").quantize(COLORS).save(small, "PNG", optimize=True)
        data = {"image/png": base64.b64encode(small.getvalue()).decode(), "text/plain": ["<Figure>"]}
        outputs.append({"data": data, "metadata": {}, "output_type": "display_data"})
    plt.close("all")
    return outputs


def run(cell, names):
    """Return the outputs of a code cell. It uses and changes the variables `names`."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("".join(cell["source"]), cell["id"], "exec"), names)
    text = printed.getvalue()
    stream = [{"name": "stdout", "output_type": "stream", "text": lines(text)}] if text else []
    return stream + figures()


def without_images(outputs):
    return [output.get("text", output["output_type"]) for output in outputs]


def main(path, write):
    notebook = json.loads(path.read_text())
    plt.show = lambda: None  # the figures are taken at the end of the cell
    names = {}
    stale = []
    for cell in notebook["cells"]:
        if cell["cell_type"] != "code":
            continue
        outputs = run(cell, names)
        if without_images(outputs) != without_images(cell["outputs"]):
            stale.append(f"{cell['id']}: {without_images(outputs)}")
        cell["outputs"] = outputs
    if write:
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    elif stale:
        sys.exit("\n".join([f"{path.name} has other outputs; run notebook.py with --write:", *stale]))


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--write" in sys.argv)
