// bench/crowd.mjs: starts many sandboxes at once and measures how many start, how long it takes, and the memory of each.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { tree } from './gateway/place.mjs';
import { start } from './measure.mjs';
import { number } from './stats.mjs';

const MB = 1024 ** 2;

export async function benchCrowd(fixture, { sizes, srtSizes }) {
  const actor = fixture.actors.user;
  const project = join(actor.home, 'project');
  const rows = [];
  for (const count of sizes)
    rows.push({ name: '**ags**', count, ...(await crowd(actor, fixture.ags('exec', '--', 'cat'), project, count)) });
  if (fixture.srt !== null)
    for (const count of srtSizes)
      rows.push({ name: 'srt', count, ...(await crowd(actor, fixture.srt('cat'), project, count)) });
  const most = rows.findLast((row) => row.name === '**ags**');
  return {
    title: 'Many sandboxes at once',
    text: 'All sandboxes start at the same moment over the same repository; each runs `cat` and answers a line once it is up. "All up" is the time until the last one has answered, "all gone" the time until the last one has ended by itself. Memory is what each sandbox uses in addition to `cat` while it waits: its proportional share (PSS) and its private memory (USS), summed over all its processes.',
    tables: [
      {
        head: [
          '',
          'at once',
          'succeeded',
          'all up',
          'all gone',
          'processes added by each',
          'memory of each, PSS',
          'USS',
          '`cat` itself, PSS',
        ],
        rows: rows.map(cells),
      },
    ],
    bars: [
      {
        name: `${most.count} sandboxes started at once: how many failed`,
        value: { median: most.count - most.succeeded, p10: 0, p90: 0, n: 1 },
        atMost: 0,
      },
    ],
    chart: {
      title: 'Memory of one sandbox beside its command (PSS)',
      unit: 'MB',
      bars: rows
        .filter((row) => row.count === 10)
        .map((row) => ({
          label: `${row.name.replaceAll('*', '')}, ${row.count} at once`,
          values: [row.memory.pss / MB],
          ours: row.name !== 'srt',
        })),
    },
  };
}

function cells(row) {
  const mb = (bytes) => `${number(bytes / MB)} MB`;
  return [
    row.name,
    String(row.count),
    `${row.succeeded} of ${row.count}`,
    `${number(row.upMs)} ms`,
    `${number(row.goneMs)} ms`,
    number(row.memory.processes),
    mb(row.memory.pss),
    mb(row.memory.uss),
    mb(row.memory.command),
  ];
}

/** `look`: measures the crowd while all are up. */
export async function crowd(actor, argv, cwd, count, look = averageMemory) {
  const began = performance.now();
  const children = Array.from({ length: count }, () => member(actor, argv, cwd));
  const up = await Promise.all(children.map((child) => child.up));
  const upMs = performance.now() - began;
  const memory = look(children.map((child) => child.pid));
  for (const child of children) child.end();
  const codes = await Promise.all(children.map((child) => child.done));
  const bad = children.find((_, i) => !up[i] || codes[i] !== 0);
  if (bad !== undefined) process.stderr.write(`bench: one of ${count} failed: ${bad.text()}\n`);
  return {
    succeeded: codes.filter((code, i) => code === 0 && up[i]).length,
    upMs,
    goneMs: performance.now() - began,
    memory,
  };
}

function member(actor, argv, cwd) {
  const child = start(actor, argv, { cwd });
  let text = '';
  const done = once(child, 'close').then(([code]) => code);
  const up = new Promise((resolve) => {
    child.stdout.on('data', (chunk) => {
      text += chunk;
      if (text.includes('up\n')) resolve(true);
    });
    void done.then(() => resolve(false));
  });
  child.stderr.on('data', (chunk) => (text += chunk));
  child.stdin.on('error', () => undefined);
  child.stdin.write('up\n');
  return { pid: child.pid, up, done, end: () => child.stdin.end(), text: () => text };
}

/** Memory per sandbox, without the command's own processes. */
function averageMemory(pids) {
  const isCommand = (pid) => readFileSync(`/proc/${pid}/comm`, 'utf8').trim() === 'cat';
  const sum = { pss: 0, uss: 0, command: 0, processes: 0 };
  for (const pid of pids.flatMap((one) => tree(one))) {
    const { pss, uss } = readMemory(pid);
    if (isCommand(pid)) sum.command += pss;
    else {
      sum.pss += pss;
      sum.uss += uss;
      sum.processes += 1;
    }
  }
  return Object.fromEntries(Object.entries(sum).map(([key, value]) => [key, value / pids.length]));
}

function readMemory(pid) {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  const kb = (name) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) * 1024;
  return { pss: kb('Pss'), uss: kb('Private_Clean') + kb('Private_Dirty') };
}
