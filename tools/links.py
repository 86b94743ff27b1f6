"""links.py - the relative links of Markdown files, for tools and tests.  SPDX-License-Identifier: Apache-2.0"""
import re

CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.S | re.M)
LINK = re.compile(r"\]\(<?([^)>\s]+)>?(?:\s[^)]*)?\)")


def pages(root):
    """Where a reader begins: the pages of the top level and of docs/, and the skill."""
    return [*sorted(root.glob("*.md")), *sorted(p for p in (root / "docs").rglob("*.md") if p.parent.name != "site"), root / "skills/klineage/SKILL.md"]


def of(page):
    """The targets of a page's links into this repository, without their anchors."""
    targets = LINK.findall(CODE.sub("", page.read_text()))
    return [target.split("#")[0] for target in targets if not re.match(r"[a-z]+:|#", target)]


def reached(root, begin):
    """(the files that `begin` and what they link to lead to, "PAGE: TARGET: why" of every broken link)."""
    found, broken, waiting = set(), [], list(begin)
    while waiting:
        page = waiting.pop()
        if page in found:
            continue
        found.add(page)
        for target in of(page) if page.suffix in (".md", ".txt") else ():
            path = (page.parent / target).resolve()
            if not path.is_relative_to(root) or not path.is_file():
                broken.append(f"{page.relative_to(root)}: {target}: {'a folder' if path.is_dir() else 'no such file'}")
            else:
                waiting.append(path)
    return found, sorted(broken)
