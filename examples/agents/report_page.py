"""The look of a report's page: one style sheet, embedded, light or dark as the reader's system is, and printable."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2730; --soft: #5d6b78; --line: #dde3e8; --paper: #fff; --back: #f3f5f7;
  --accent: #2f6f9f; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e9ee; --soft: #9aa8b5; --line: #33404c; --paper: #1b232b; --back: #12181e; --accent: #7db4dc; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--ink); font: 16px/1.6 system-ui, "Segoe UI", Roboto, sans-serif; }
header, main { max-width: 54rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 3rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 1rem; }
h2 { font-size: 1.25rem; margin: 0 0 .75rem; }
nav ol { margin: 0 0 1.5rem; padding-left: 1.3rem; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
section { background: var(--paper); border: 1px solid var(--line); border-radius: 10px; padding: 1.5rem; margin: 0 0 1.5rem; }
p { margin: 0 0 .75rem; overflow-wrap: anywhere; }
figure { margin: 1rem 0; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; background: #fff; border-radius: 6px; }
.table { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .95rem; }
th, td { text-align: left; padding: .4rem .75rem; border-bottom: 1px solid var(--line); }
th { border-bottom: 2px solid var(--accent); white-space: nowrap; }
.number { text-align: right; font-variant-numeric: tabular-nums; }
tbody tr:last-child td { border-bottom: 0; }
pre { white-space: pre-wrap; background: var(--back); padding: 1rem; border-radius: 6px; font-size: .9rem; }
.by { color: var(--soft); font-size: .85rem; margin: .5rem 0 0; }
@media print { body { background: #fff; } section { break-inside: avoid; border: 0; padding: 0; } }
"""
