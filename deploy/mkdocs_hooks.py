# SPDX-License-Identifier: Apache-2.0
"""Hooks of mkdocs.yml: expand folders in the navigation, rewrite links out of docs/, make GitHub's anchors."""

import pathlib
import posixpath
import re

LINK = re.compile(r"\[([^\]]*)\]\(([^)\s]+)\)")


def pages_of(folder):
    """Return the pages of a folder, its index first."""
    return sorted(folder.glob("*.md"), key=lambda path: (path.stem not in ("index", "README"), path.name))


def expand(entries, docs):
    """Return the navigation with the pages of a folder in place of each entry that ends with /."""
    expanded = []
    for entry in entries:
        [(title, target)] = entry.items()
        if isinstance(target, list):
            target = expand(target, docs)
        elif target.endswith("/"):
            target = [str(path.relative_to(docs)) for path in pages_of(docs / target)]
        expanded.append({title: target})
    return expanded


def anchor(heading, separator):
    """Return GitHub's anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", separator)


def on_config(config):
    config["nav"] = expand(config["nav"], pathlib.Path(config["docs_dir"]))
    config["mdx_configs"].setdefault("toc", {})["slugify"] = anchor
    return config


def on_page_markdown(markdown, page, config, files):
    """Point links to a folder at its first page. Replace links out of docs/ by the path in the repository."""
    docs = pathlib.Path(config["docs_dir"])

    def rewritten(link):
        text, target = link.groups()
        if re.match("[a-z]+:|#", target):
            return link.group()
        path = posixpath.normpath(posixpath.join(posixpath.dirname(page.file.src_path), target.partition("#")[0]))
        if path.startswith("../"):
            name = f"`{path[3:]}`"
            return name if text.strip("`") in (path[3:], posixpath.basename(path)) else f"{text} ({name})"
        if (docs / path).is_dir():
            first = pages_of(docs / path)[0].relative_to(docs)
            return f"[{text}]({posixpath.relpath(str(first), posixpath.dirname(page.file.src_path))})"
        return link.group()

    return LINK.sub(rewritten, markdown)
