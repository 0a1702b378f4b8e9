// bench/report.mjs: formats the results: a table in the terminal, docs/reference/benchmarks.md and its chart.
import { execFileSync } from 'node:child_process';
import { cpus, loadavg, release, totalmem } from 'node:os';
import { programVersion } from './peers.mjs';
import { number, spread } from './stats.mjs';

/** The machine in general terms, without identifying details. */
export function describeMachine(fixture, peers) {
  const fileSystem = execFileSync('stat', ['-f', '-c', '%T', fixture.dir], { encoding: 'utf8' })
    .trim()
    .replace('ext2/ext3', 'ext4');
  return [
    ['processor cores', `${cpus().length} (${process.arch})`],
    ['memory', `${Math.round(totalmem() / 1024 ** 3)} GB`],
    ['kernel', release().split('-')[0] ?? ''],
    ['file system', fileSystem],
    ['node', process.versions.node],
    ['bubblewrap', programVersion(['bwrap', '--version'])],
    ['git', programVersion(['git', '--version'])],
    ['@anthropic-ai/sandbox-runtime', peers.directory === null ? `not measured: ${peers.why}` : peers.version],
  ];
}

export const load = () => number(loadavg()[0]);

export function verdict(bar) {
  return bar.atMost === undefined ? bar.value.median >= bar.atLeast : bar.value.median <= bar.atMost;
}

const wanted = (bar) => (bar.atMost === undefined ? `at least ${bar.atLeast}` : `at most ${bar.atMost}`);

function barTable(sections) {
  return {
    head: ['measure', 'target', 'result', ''],
    rows: sections
      .flatMap((section) => section.bars)
      .map((bar) => [bar.name, wanted(bar), spread(bar.value), verdict(bar) ? 'met' : '**missed**']),
  };
}

export function terminalReport(sections) {
  return sections
    .flatMap((section) => [
      `\n${plain(section.title)}`,
      ...section.tables.map(
        (table) => `${table.caption === undefined ? '' : `  ${table.caption}\n`}${terminalTable(table)}`,
      ),
    ])
    .concat(['\nTargets', terminalTable(barTable(sections))])
    .join('\n');
}

const plain = (text) => text.replaceAll(/[`*]/g, '');

function terminalTable({ head, rows }) {
  const lines = [head, ...rows].map((row) => row.map(plain));
  const widths = head.map((_, i) => Math.max(...lines.map((line) => line[i].length)));
  return lines
    .map((line) =>
      `  ${line.map((cell, i) => (i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i]))).join('  ')}`.trimEnd(),
    )
    .join('\n');
}

/** `earlier`: sections that `takeEarlier` found on the replaced page. */
export function markdownReport({ sections, machine, loads, seconds, earlier = { bars: [], texts: [] } }) {
  return `${[
    '<!-- Made by "npm run bench". Do not edit: bench/report.mjs holds the words. -->',
    '# Benchmarks',
    INTRO,
    '![Bar charts of the main results](benchmarks.svg)',
    '## Targets and results',
    [markdownTable(barTable(sections)), ...earlier.bars].join('\n'),
    ...sections.flatMap(markdownSection),
    ...earlier.texts,
    '## The machine',
    markdownTable({ head: ['', ''], rows: machine }),
    `Load (processes wanting to run, one-minute mean) ${loads.before} before and ${loads.after} after; the whole took ${Math.round(seconds)} s. A load above the number of cores at the start means that other programs were running.`,
  ].join('\n\n')}\n`;
}

const markdownSection = (section) => [
  `## ${section.title}`,
  section.text,
  ...section.tables.flatMap((table) => [
    ...(table.caption === undefined ? [] : [`${table.caption}:`]),
    markdownTable(table),
  ]),
];

/** Returns a section and its bars from an existing page, because slow measurements do not run every time. */
export function takeEarlier(page, { title, bar }) {
  return {
    bars: page.split('\n').filter((line) => line.startsWith(`| ${bar}`)),
    texts: page
      .split(/^(?=## )/m)
      .filter((part) => part.startsWith(`## ${title}\n`))
      .map((part) => part.trimEnd()),
  };
}

/** Replaces earlier sections and bars with the same names, or with names that begin with `title` and `bar`. */
export function replaceSections(page, { sections, title, bar }) {
  const [head, ...parts] = page.split(/^(?=## )/m);
  const isOld = (part) =>
    sections.some((section) => part.startsWith(`## ${section.title}\n`)) ||
    (title !== undefined && part.startsWith(`## ${title}`));
  const kept = parts.filter((part) => !isOld(part));
  const at = kept.findIndex((part) => part.startsWith(title === undefined ? '## The gateway' : '## The machine'));
  if (at === -1) throw new Error('docs/reference/benchmarks.md is not what npm run bench has written');
  kept.splice(at, 0, ...sections.map((section) => `${markdownSection(section).join('\n\n')}\n\n`));
  const [first, ...rest] = kept;
  const own = markdownTable(barTable(sections)).split('\n').slice(2);
  const names = new Set(own.map(nameOfBar));
  const bars = first
    .trimEnd()
    .split('\n')
    .filter((line) => !names.has(nameOfBar(line)) && (bar === undefined || !line.startsWith(`| ${bar}`)));
  return [head, `${[...bars, ...own].join('\n')}\n\n`, ...rest].join('');
}

const nameOfBar = (line) => /^\| (.*?) \|/.exec(line)?.[1] ?? line;

const INTRO = `\`npm run bench\` compares ags with its alternatives, in one run on one machine, and writes this page. \`npm run bench -- --quick\` takes less than a minute and writes nothing; \`npm run bench -- gateway\`, \`-- layers\`, \`-- tasks\`, \`-- services\`, \`-- backends\` and \`-- page\` measure only that part and replace its sections here; \`npm run bench -- from-inside\` measures only connections from inside sandboxes and writes nothing. \`npm run soak\` measures an hour of tasks separately; its last result stays here until \`npm run bench -- soak\` replaces it.

How to read it: look at the ratios. Each round measures all variants in turn, so that other load on the machine affects them alike; a ratio compares values of the same round. Figures are medians, with the 10th and 90th percentile in brackets. Processor time is user and system time of the whole process tree, orphans included; it depends little on other load. Wall time is what a user waits for. A failed run is an error, never a fast result.`;

function markdownTable({ head, rows }) {
  return [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
}
