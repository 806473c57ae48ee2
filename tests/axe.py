"""Check a page for accessibility with axe-core, which ``make lint`` installs."""

import pytest

from tests.repository import REPOSITORY

SCRIPT = REPOSITORY / "scripts" / "javascript" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]
FIND = """
async ([selector, rules, impacts]) => {
  const { violations } = await axe.run(document.querySelector(selector), { runOnly: rules })
  const counted = violations.filter(({ impact }) => !impacts || impacts.includes(impact))
  return counted.map(({ id, nodes }) => [id, nodes.map((node) => node.html.slice(0, 200))])
}
"""


def violations(page, selector, impacts=None):
    """Return the violations inside an element as [rule, elements as HTML]; skip the test without axe-core.

    ``impacts``: return only violations of these impacts, such as ["serious", "critical"]; None: all violations.
    """
    if not SCRIPT.exists():
        pytest.skip("axe-core is not installed: make lint")
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(f"{SCRIPT.read_text(encoding='utf-8')}\nundefined")
    return page.evaluate(FIND, [selector, RULES, impacts])
