"""The page around a report: head, style for light, dark and print, table of contents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NA_MARK: Final = "\u2013"

LIGHT: Final = {
    "ink": "#1b1b1b",
    "soft": "#555555",
    "paper": "#ffffff",
    "panel": "#f4f4f4",
    "link": "#0b5cad",
    "line": "#cccccc",
}
DARK: Final = {
    "ink": "#e8e8e8",
    "soft": "#b4b4b4",
    "paper": "#161616",
    "panel": "#242424",
    "link": "#8ab8ff",
    "line": "#4a4a4a",
}
"""Colours by use; every text colour has a contrast of at least 4.5 : 1 on paper and on panels."""

_STYLE: Final = """
body { margin: 0 auto; max-width: 60rem; padding: 2rem 1.25rem; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0; }
h2 { font-size: 1.35rem; margin: 2.5rem 0 .75rem; border-bottom: 1px solid var(--line); padding-bottom: .25rem; }
p { margin: .75rem 0; overflow-wrap: anywhere; }
p.subtitle, p.note, figcaption { color: var(--soft); }
p.note, figcaption { font-size: .875rem; }
a { color: var(--link); }
nav { background: var(--panel); padding: .75rem 1rem; margin: 1.5rem 0; }
nav ol { margin: 0; padding-left: 1.5rem; }
figure { margin: 1.5rem 0; }
figure svg { display: block; max-width: 100%; height: auto; box-sizing: border-box; padding: .5rem;
  background: #ffffff; stroke-linejoin: round; }
figcaption { margin-top: .5rem; }
div.table { overflow-x: auto; margin-top: 1.5rem; }
table { border-collapse: collapse; font-size: .875rem; }
caption { text-align: left; font-weight: 600; padding-bottom: .5rem; }
th, td { text-align: left; vertical-align: top; padding: .3rem .7rem; border-bottom: 1px solid var(--line);
  overflow-wrap: break-word; max-width: 28rem; }
th { border-bottom-width: 2px; }
.n { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
pre { background: var(--panel); padding: .75rem 1rem; overflow-x: auto; font-size: .8125rem; line-height: 1.45; }
code { font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
@media print {
  body { max-width: none; padding: 0; font-size: 10pt; }
  nav { background: none; padding: 0; }
  figure, tr, pre { break-inside: avoid; }
  h2 { break-after: avoid; }
  div.table, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
}
"""


def stylesheet() -> str:
    """Return the style: light by default and in print, dark where the reader prefers it."""
    light, dark = (_variables(colours) for colours in (LIGHT, DARK))
    return (
        f":root {{ color-scheme: light dark; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}{_STYLE}"
    )


def page(*, title: str, subtitle: str, sections: Sequence[str], body: str) -> str:
    """Return the whole page; all arguments are HTML already."""
    below = f'<p class="subtitle">{subtitle}</p>' if subtitle else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{stylesheet()}</style>
</head>
<body>
<header>
<h1>{title}</h1>
{below}
</header>
{_contents(sections)}<main>
{body}
</main>
</body>
</html>
"""


def _variables(colours: dict[str, str]) -> str:
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def _contents(sections: Sequence[str]) -> str:
    if len(sections) < 2:
        return ""
    items = "".join(f'<li><a href="#section-{k}">{title}</a></li>' for k, title in enumerate(sections, start=1))
    return f'<nav aria-label="Contents"><ol>{items}</ol></nav>\n'
