import { readFileSync } from 'node:fs';
import type { Page } from 'playwright-core';

const axe = readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8');
const TABS_OUT_OF_VIEW = `[...document.querySelectorAll('.tabs [aria-current]')]
  .filter((tab) => tab.getBoundingClientRect().right > tab.closest('ul').getBoundingClientRect().right + 1)
  .map((tab) => tab.textContent)`;
/** Texts that are cut off (except scrolling tabs, and texts with a button that copies them), and borders of controls with a contrast below 3:1. */
const UNSEEN = `(() => {
  const shown = [...document.querySelectorAll('main *, header *')].filter((one) => one.checkVisibility());
  const cut = shown.filter((one) => !/^(INPUT|SELECT)$/.test(one.tagName) && !one.closest('.hidden, .clip') &&
    one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0 && getComputedStyle(one).overflowX !== 'visible' && one.tabIndex < 0 && !one.matches('.tabs ul'));
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const luminance = (color) => numbers(color).slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, i) => sum + part * [0.2126, 0.7152, 0.0722][i], 0);
  const solid = (one) => {
    const color = getComputedStyle(one).backgroundColor;
    return numbers(color)[3] === 0 ? solid(one.parentElement) : color;
  };
  const contrast = (one, other) => {
    const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
    return (light + 0.05) / (dark + 0.05);
  };
  const faint = shown.filter((one) => one.matches('button, .button, input:not([type=hidden]), select, textarea') &&
    Math.max(contrast(getComputedStyle(one).borderTopColor, solid(one.parentElement)),
      contrast(solid(one), solid(one.parentElement))) < 3);
  return [...cut, ...faint].map((one) => one.outerHTML);
})()`;

const ALL = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
const OF_COLORS = ['color-contrast', 'link-in-text-block'];

/** Problems of a page: axe's findings, overflowing or cut-off content, and controls that are hard to see. */
const findings = (rules: string[]) => `axe.run(document, { runOnly: ${JSON.stringify(rules)} })
  .then(({ violations }) => ({
    violations: violations.map(({ id, nodes }) => id + ': ' + nodes.map((node) => node.html).join(' | ')),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    tabs: ${TABS_OUT_OF_VIEW},
    unseen: ${UNSEEN},
  }))`;

/**
 * Checks the current page; `name` identifies it in messages. `onlyColors` skips rules whose result doesn't
 * depend on colors.
 */
export async function checkAccessibility(page: Page, name = page.url(), onlyColors = false): Promise<void> {
  if (!(await page.evaluate(`'axe' in window`))) await page.evaluate(axe);
  const found = (await page.evaluate(findings(onlyColors ? OF_COLORS : ALL))) as object;
  expect({ name, ...found }).toEqual({ name, violations: [], overflow: 0, tabs: [], unseen: [] });
}
