// bench/tasks.mjs: the overhead of a task beside the work of its agent: start and end, logging, and bringing out changes, at sizes that grow
// tenfold.
import { spawn } from 'node:child_process';
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readFileSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { measure } from './measure.mjs';
import { number, spread, summary } from './stats.mjs';
import { calm } from './fixture.mjs';

const LIMIT_MEMORY = 200;

export async function benchTasks(fixture, { path }, { rounds, megabytes, changes }) {
  const actor = fixture.actors.user;
  const start = (name, agent) => runTask(fixture, actor, path, name, agent);
  const plain = [];
  const nothing = [];
  await start('warm', 'sh -c "cat >/dev/null"');
  for (let round = 0; round < rounds; round += 1) {
    calm(fixture);
    plain.push(measure(actor, fixture.ags('exec', '--', 'true'), { cwd: path }).wallMs);
    nothing.push((await start(`nothing-${round}`, '/bin/true')).wallMs);
  }
  const said = [];
  for (const size of megabytes) {
    const script = `cat >/dev/null; head -c ${size}000000 /dev/zero | tr '\\0' x | fold -w 200`;
    said.push({ size, ...(await start(`says-${size}`, `sh -c "${script}"`)) });
  }
  const changed = [];
  for (const count of changes) {
    const script = `perl -e 'mkdir q(made); for (1..${count}) { open F, q(>), qq(made/$_.txt); print F qq(made $_\\n); close F }'`;
    const made = await start(`makes-${count}`, script);
    if (made.files !== count) throw new Error(`${made.files} files instead of ${count}`);
    changed.push({ count, ...made });
  }
  return {
    title: 'Tasks of agents',
    text: 'The agent is a small program, so the figures show what ags does around it: queue, layers, sandbox, events, branch. "Whole" is `ags start` until its run is over. Memory is the peak of the runner with its gateway and hooks.',
    tables: [
      {
        caption: 'a task that does nothing',
        head: ['', 'whole', 'beside'],
        rows: [
          [
            'an agent that does nothing',
            spread(summary(nothing), 'ms'),
            `\`ags exec -- true\`: ${spread(summary(plain), 'ms')}`,
          ],
        ],
      },
      {
        caption: 'much output',
        head: ['the agent says', 'whole', 'memory of the runner'],
        rows: said.map(({ size, wallMs, peakKb }) => [
          `${size} MB`,
          `${number(wallMs / 1000)} s`,
          `${number(peakKb / 1024)} MB`,
        ]),
      },
      {
        caption: 'many changes',
        head: ['the agent changes', 'whole', 'of it, onto the branch', 'memory of the runner'],
        rows: changed.map(({ count, wallMs, outMs, peakKb }) => [
          `${count} files`,
          `${number(wallMs / 1000)} s`,
          `${number(outMs / 1000)} s`,
          `${number(peakKb / 1024)} MB`,
        ]),
      },
    ],
    bars: [
      {
        name: `a task: memory of the runner whose agent says ${megabytes.at(-1)} MB, MB`,
        value: summary([(said.at(-1)?.peakKb ?? 0) / 1024]),
        atMost: LIMIT_MEMORY,
      },
    ],
  };
}

/** Runs a task to its end and samples the memory of its runner. */
async function runTask(fixture, actor, path, name, agent) {
  const [file, ...args] = fixture.ags('start', name, 'a goal', '--agent', agent, '--json');
  const began = performance.now();
  const child = spawn(file, args, {
    cwd: path,
    env: actor.env,
    ...actor.identity,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.resume();
  let peakKb = 0;
  const look = setInterval(() => (peakKb = Math.max(peakKb, ...runnersOf(name).map(memoryOf))), 50);
  await new Promise((resolve) => child.once('close', resolve));
  clearInterval(look);
  const wallMs = performance.now() - began;
  const events = endOf(join(actor.home, '.local/state/ags/tasks', name, 'events.jsonl'))
    .trimEnd()
    .split('\n');
  const at = (type) =>
    Date.parse(JSON.parse(events.findLast((line) => line.includes(`"type":"${type}"`)) ?? '{}').at ?? '');
  const last = JSON.parse(events.at(-1) ?? '{}');
  if (!['ready', 'no-changes'].includes(last.state))
    throw new Error(`the task ${name} did not end well: ${events.at(-1)}`);
  return { wallMs, peakKb, outMs: at('run.ended') - at('agent.finished'), files: last.result?.files };
}

/** Reads only the end, because a string cannot hold a gigabyte. */
function endOf(file) {
  const handle = openSync(file, 'r');
  try {
    const { size } = fstatSync(handle);
    const end = Buffer.alloc(Math.min(size, 2 ** 20));
    readSync(handle, end, 0, end.length, size - end.length);
    return end.toString('utf8');
  } finally {
    closeSync(handle);
  }
}

function runnersOf(name) {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1').endsWith(`\0__run\0${name}\0`);
    } catch {
      return false;
    }
  });
}

function memoryOf(pid) {
  const file = `/proc/${pid}/status`;
  try {
    return existsSync(file) ? Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(file, 'utf8'))?.[1] ?? 0) : 0;
  } catch {
    return 0;
  }
}
