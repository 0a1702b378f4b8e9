// bench/page/place.mjs: a developer's machine with many tasks, written directly as files, and a real `ags serve`.
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { emptyDirectory, makeRepository } from '../fixture.mjs';

const ENDED = ['ready', 'merged', 'no-changes', 'failed', 'merged', 'stopped'];
const GOALS = [
  'Let the search forgive a wrong letter, and say what was found instead',
  'The export to CSV loses the last column when a cell has a line break in it',
  'Write tests for the parser of addresses; there are none for IPv6',
  'Replace the hand-made cache by the one of the standard library',
];

/** An empty home, a project and the directories of tasks, separate for each measurement. */
export function makePlace(fixture, name) {
  const { user } = fixture.actors;
  const home = emptyDirectory(user, name);
  const actor = { ...user, home, env: { ...user.env, HOME: home } };
  const project = makeRepository(actor, 'project', 50);
  // Running tasks need a live process as their runner.
  const runner = spawn('sleep', ['36000'], { stdio: 'ignore' });
  const end = () => runner.kill('SIGKILL');
  process.on('exit', end);
  const state = join(home, '.local/state/ags');
  return {
    actor,
    project,
    state,
    /** `ended`: the final state of a task that is not live; `events`: its log so far, without numbers. */
    add(id, { number = 0, ended = ENDED[number % ENDED.length], live = false, events = [] } = {}) {
      writeTask(
        { state, project, runner: identity(runner.pid) },
        { id, number, shown: live ? 'running' : ended, live, events },
      );
    },
    /** Makes the files writable for the server's user. */
    settle() {
      if (actor.identity.uid !== undefined) spawnSync('chown', ['-R', `${actor.uid}:${actor.uid}`, home]);
    },
    serve: (port = 0) => serve(fixture, { actor, project, state }, port),
    close() {
      process.off('exit', end);
      end();
    },
  };
}

function writeTask({ state, project, runner }, { id, number, shown, live, events }) {
  const directory = join(state, 'tasks', id);
  mkdirSync(directory, { recursive: true });
  const base = '0'.repeat(40);
  const limits = { maxSeconds: null, maxCostMicros: null, maxTurns: null, parallel: 4 };
  const text = `${GOALS[number % GOALS.length]} (${number})`;
  const goal = { text, agent: 'demo', interactive: false, base, baseRef: null, flags: {}, ...limits };
  const task = { version: 1, id, name: id, kind: 'agent', goal, project, git: true, command: ['demo'] };
  const startedAtMs = Date.UTC(2026, 0, 1) + number * 60_000;
  writeFileSync(
    join(directory, 'task.json'),
    JSON.stringify({ ...task, createdAt: new Date(startedAtMs).toISOString() }),
  );
  const run = {
    version: 1,
    state: shown,
    startedAtMs,
    ...(live ? {} : { endedAtMs: startedAtMs + 754_000 }),
    exitCode: live ? null : 0,
    label: '',
    workspace: 'overlay',
    hidden: [],
    revealed: [],
    base,
    objectFormat: 'sha1',
    runner,
    user: { uid: 0, gid: 0 },
    settled: [],
    ignoredDiscarded: false,
    number: 1,
    result: null,
  };
  writeFileSync(join(directory, 'run.json'), JSON.stringify(run));
  const lines = [{ type: 'run.queued' }, ...events].map((event, i) =>
    JSON.stringify({
      seq: i + 1,
      at: new Date(startedAtMs + i * 100).toISOString(),
      task: id,
      ...event,
      prev: '',
    }),
  );
  writeFileSync(join(directory, 'events.jsonl'), `${lines.join('\n')}\n`);
}

/** Adds tasks of which `live` run; `watched` is the newest. The others are merged, so that running ones are at the top of the list. */
export function addLiveTasks(place, tasks, live) {
  const ids = Array.from({ length: live }, (_, i) => `task-${i}`);
  for (let i = 0; i < tasks; i += 1)
    place.add(`task-${i}`, { number: i, ended: 'merged', live: i < live, events: i < live ? [] : [usualEvent(0)] });
  place.settle();
  return { ids, watched: ids.at(-1) };
}

/** The most frequent events of agents: messages, commands, reads and thoughts. */
export function usualEvent(i) {
  const id = `tool-${Math.floor(i / 6)}`;
  switch (i % 6) {
    case 0:
      return { type: 'agent.said', text: `Step ${i}: the test shows that the **last column** is lost. ${WORDS}` };
    case 1:
      return {
        type: 'tool.started',
        id,
        tool: 'Bash',
        action: { kind: 'command', command: `npm test -- part-${i}.test.ts` },
      };
    case 2:
      return {
        type: 'tool.finished',
        id,
        outcome: 'done',
        exitCode: 0,
        output: `${i} passed\n${WORDS}`,
        durationMs: 840,
      };
    case 3:
      return {
        type: 'tool.started',
        id: `${id}w`,
        tool: 'Edit',
        action: { kind: 'write', path: `src/part-${i % 50}.ts`, change: 'edit', content: `// ${WORDS}\n` },
      };
    case 4:
      return { type: 'tool.finished', id: `${id}w`, outcome: 'done', output: '' };
    default:
      return { type: 'agent.thought', text: `What else reads the cells of line ${i}? ${WORDS}` };
  }
}

const WORDS =
  'A cell with a line break ends the line too early, because the reader splits before it looks at quotes. '.repeat(2);

function identity(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return { pid, startTicks: `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19]}` };
}

async function serve(fixture, { actor, project, state }, port) {
  const [file, ...args] = fixture.ags('serve', '--port', String(port));
  const child = spawn(file, args, {
    ...actor.identity,
    cwd: project,
    env: actor.env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  child.stderr.on('data', (text) => (said += text));
  const end = () => child.kill('SIGKILL');
  process.on('exit', end);
  const link = await new Promise((resolve, reject) => {
    child.once('close', () => reject(new Error(`the server ended: ${said}`)));
    child.stdout.once('data', (text) => resolve(String(text).trim()));
  });
  const { origin, port: served } = new URL(link);
  // The system may not resolve the browser's host name.
  const url = `http://127.0.0.1:${served}`;
  const headers = { Authorization: `Bearer ${readFileSync(join(state, 'server/key'), 'utf8').trim()}` };
  const get = async (path) => {
    const answer = await fetch(`${url}${path}`, { headers });
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  };
  const { projects } = await get('/api/projects');
  return {
    link,
    origin,
    url,
    headers,
    port: Number(served),
    pid: child.pid,
    get,
    /** The URL of the only project in the page. */
    home: `${origin}/p/${projects[0]?.id ?? ''}`,
    async stop() {
      process.off('exit', end);
      const gone = new Promise((resolve) => child.once('close', resolve));
      child.kill('SIGTERM');
      await gone;
    },
  };
}

/** The resource usage of a process so far. */
export function usage(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mb = (name) => Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)[1]) / 1024;
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * 10,
    at: performance.now(),
    rssMb: mb('VmRSS'),
    mostMb: mb('VmHWM'),
  };
}
