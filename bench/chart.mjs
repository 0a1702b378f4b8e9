// bench/chart.mjs: draws the main results as one SVG of horizontal bars. It has its own background, because a page may be light or dark.
import { number, summary } from './stats.mjs';

const WIDTH = 760;
const MARGIN = 16;
const LABEL = 206;
const VALUE = 126;
const BAR = 20;
const GAP = 8;

export function drawChart(charts) {
  const parts = [];
  let y = MARGIN;
  for (const chart of charts) {
    parts.push(`<text class="title" x="${MARGIN}" y="${y + 12}">${escape(chart.title)}</text>`);
    y += 26;
    for (const bar of scaled(chart)) {
      parts.push(
        `<text x="${LABEL - 10}" y="${y + 15}" text-anchor="end">${escape(bar.label)}</text>`,
        `<rect class="${bar.ours ? 'ours' : 'theirs'}" x="${LABEL}" y="${y}" width="${bar.width.toFixed(1)}" height="${BAR}" rx="3"/>`,
        `<text class="value" x="${(LABEL + bar.width + 8).toFixed(1)}" y="${y + 15}">${escape(`${number(bar.value)} ${chart.unit}`)}</text>`,
      );
      y += BAR + GAP;
    }
    y += 18;
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="Results of npm run bench, as in the tables">\n${STYLE}\n<rect class="page" width="${WIDTH}" height="${y}" rx="8"/>\n${parts.join('\n')}\n</svg>\n`;
}

function scaled({ bars }) {
  const values = bars.map((bar) => summary(bar.values).median);
  const most = Math.max(...values);
  return bars.map((bar, i) => ({
    ...bar,
    value: values[i],
    width: Math.max(2, (values[i] / most) * (WIDTH - LABEL - VALUE)),
  }));
}

const STYLE = `<style>
  .page { fill: #ffffff }
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600 }
  .value { fill: #57606a }
  .ours { fill: #1f7a4d }
  .theirs { fill: #a8b1bb }
  @media (prefers-color-scheme: dark) {
    .page { fill: #161b22 } text { fill: #e6edf3 } .value { fill: #9ea7b3 } .ours { fill: #3fb950 } .theirs { fill: #5b6672 }
  }
</style>`;

const escape = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
