// bench/soak.mjs: runs many tasks in parallel for an hour: starts them, waits, then merges and undoes or removes them. Memory of processes and
// disk usage must not grow. Invariant: a task that ends in an unexpected state is an error, not a figure.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { WebSocket } from 'ws';
import { start } from './measure.mjs';
import { makePlace } from './page/place.mjs';
import { git, lookAt, processes, remains } from './soak-look.mjs';
import { number, summary } from './stats.mjs';
import { growth, laterHalf, median } from './trend.mjs';
import { wait } from './fixture.mjs';

/** The allowed growth in the later half: this share or this amount, whichever is larger. */
const BOUNDS = {
  'memory of the server, MB': { share: 0.15, least: 20 },
  'descriptors of the server': { share: 0.1, least: 5 },
  'memory of a runner, the most, MB': { share: 0.15, least: 20 },
  'descriptors of a runner, the most': { share: 0.2, least: 10 },
  'processes of ours': { share: 0.3, least: 15 },
  'state directory, MB': { share: 0.2, least: 10 },
  'time of ags list, ms': { share: 0.5, least: 300 },
};

const TIMED_MINUTES = 10;

export const SOAK = { title: 'An hour of tasks', bar: 'an hour of tasks: ' };

export async function benchSoak(fixture, { minutes, parallel, everyMs }) {
  const place = makePlace(fixture, 'soak');
  place.settle();
  const server = await place.serve();
  const listener = await listenTo(server);
  const { actor, project, state } = place;
  const base = git(actor, project, 'rev-parse', 'HEAD');
  const run = (...args) => command(fixture, actor, project, args);
  const done = { tasks: 0, merges: 0, trouble: [] };
  const look = () => lookAt({ actor, state, project, list: async () => note(done, 'list', await run('list')) });
  const began = performance.now();
  const until = began + minutes * 60_000;
  const samples = [];
  const workers = Array.from({ length: parallel }, (_, i) => work({ i, run, base, done, parallel, until }));
  const all = Promise.all(workers).then(() => true);
  for (let over = false; !over; over = await Promise.race([wait(everyMs).then(() => false), all])) {
    samples.push({ at: performance.now() - began, ...(await look()) });
    process.stderr.write(`\rsoak: ${Math.round((performance.now() - began) / 1000)} s, ${done.tasks} tasks `);
  }
  await run('cleanup', '--yes');
  listener.close();
  await server.stop();
  await settle(() => processes(actor.home).length === 0);
  const left = [
    ...processes(actor.home).map(({ words }) => `process ${words.join(' ')}`),
    ...readdirSync(join(state, 'tasks')).map((name) => `task ${name}`),
    ...remains(WORD, fixture.dir),
  ];
  place.close();
  // During the last sample some tasks were starting or ending.
  return section({ samples: samples.slice(0, -1), done, left, minutes, parallel });
}

/** Listens to the list, because a server without clients does no work. */
async function listenTo({ port, headers }) {
  const socket = new WebSocket(`ws://127.0.0.1:${port}/api/live`, { headers });
  await new Promise((resolve, reject) => socket.once('open', resolve).once('error', reject));
  for (const topic of ['tasks', 'projects']) socket.send(JSON.stringify({ do: 'subscribe', topic, after: null }));
  return socket;
}

const WORD = 'soak';
let others = Promise.resolve();
const alone = (work) => (others = others.then(work));

/** Runs tasks in sequence. Every third is merged and undone, one at a time as by a person; the others are removed. */
async function work({ i, run, base, done, parallel, until }) {
  for (let n = 0; performance.now() < until && done.trouble.length === 0; n += 1) {
    const name = `${WORD}-${i}-${n}`;
    const goal = `write: ${name}.txt one // commit: One // wait: 0.5 // write: ${name}.txt two // say: done`;
    const options = ['--agent', 'demo', '--base', base, '--max-parallel', String(parallel)];
    const step = async (...args) => note(done, args.join(' '), await run(...args));
    await step('start', name, goal, ...options);
    if (n % 3 === 0)
      await alone(async () => {
        await step('merge', name, '-y', '--into', 'main');
        await step('undo', name);
        done.merges += 1;
      });
    await step('rm', '--yes', name);
    done.tasks += 1;
    // Clean-up removes merged tasks, so none may be waiting for its undo.
    if (i === 0 && n % 10 === 9) await alone(() => step('cleanup', '--yes'));
  }
}

function note(done, what, trouble) {
  if (trouble !== null) done.trouble.push(`ags ${what}: ${trouble}`);
}

/** Returns the output if the command failed. */
async function command(fixture, actor, cwd, args) {
  const child = start(actor, fixture.ags(...args), { cwd });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
  child.stdin.end();
  const code = await new Promise((resolve) => child.once('close', resolve));
  return code === 0 ? null : `${code}: ${said}`;
}

async function settle(holds) {
  for (let left = 100; left > 0 && !holds(); left -= 1) await wait(100);
}

function section({ samples, done, left, minutes, parallel }) {
  const names = Object.keys(samples[0] ?? {}).filter((name) => name !== 'at');
  const rows = names.map((name) => {
    const values = samples.flatMap(({ at, [name]: value }) => (value === undefined ? [] : [{ at, value }]));
    const later = laterHalf(values);
    const [level, grown] = [median(later.map(({ value }) => value)), growth(later)];
    // Times over a few seconds reflect the machine more than ags.
    const bound = name.startsWith('time') && minutes < TIMED_MINUTES ? undefined : BOUNDS[name];
    const most = bound === undefined ? null : Math.max(bound.share * level, bound.least);
    return { name, level, most, grown, peak: Math.max(0, ...values.map(({ value }) => value)) };
  });
  const wrong = [...done.trouble, ...left.map((one) => `left: ${one}`)];
  return {
    title: SOAK.title,
    text: `${parallel} tasks at a time for ${number(minutes)} minutes, ${done.tasks} in all, ${done.merges} of them merged and undone; each has an agent that writes, commits and waits for half a second. A server runs beside them. Growth is the slope through all samples of the second half, multiplied by its length.`,
    tables: [
      {
        head: ['', 'usually', 'at most', 'grows in the later half', 'bound'],
        rows: rows.map(({ name, level, peak, grown, most }) => [
          name,
          number(level),
          number(peak),
          number(grown),
          most === null ? '' : number(most),
        ]),
      },
    ],
    bars: [
      { name: `${SOAK.bar}that went wrong, or left something`, value: summary([wrong.length]), atMost: 0 },
      ...rows
        .filter(({ most }) => most !== null)
        .map(({ name, grown, most }) => ({
          name: `${SOAK.bar}growth of ${name}`,
          value: summary([grown]),
          atMost: Math.round(most * 100) / 100,
        })),
    ],
    ...(wrong.length === 0 ? {} : { check: wrong.slice(0, 5).join('\n') }),
  };
}
