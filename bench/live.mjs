// bench/live.mjs: a server with many tasks, many of which say something many times a second, and a tab that listens to all of them:
// is anything lost, and what does it cost?  node bench/live.mjs [tasks] [live] [events a second] [seconds]
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { WebSocket } from 'ws';

const [tasks = 1000, live = 200, perSecond = 20, seconds = 10] = process.argv.slice(2).map(Number);
const root = fileURLToPath(new URL('..', import.meta.url));
const home = mkdtempSync(join(tmpdir(), 'ags-live-'));
const state = join(home, '.local/state/ags');
/** Of the last event of each task. */
const seqs = new Map();
const runner = spawn('sleep', ['3600'], { stdio: 'ignore' });

try {
  console.log(JSON.stringify(await measure(), null, 1));
} finally {
  runner.kill('SIGKILL');
  rmSync(home, { recursive: true, force: true });
}

async function measure() {
  for (let i = 0; i < tasks; i++) makeTask(`task-${i}`, i < live);
  const server = spawn(process.execPath, [join(root, 'bin/ags.cjs'), 'serve', '--port', '0'], {
    env: { HOME: home, PATH: process.env.PATH, USER: 'bench', SHELL: '/bin/sh' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  try {
    const link = await new Promise((resolve) => server.stdout.once('data', (text) => resolve(String(text).trim())));
    // Node asks the system for names, which may not know this one.
    const url = `http://127.0.0.1:${new URL(link).port}`;
    const headers = { Authorization: `Bearer ${readFileSync(join(state, 'server/key'), 'utf8').trim()}` };
    const list = async () => {
      const began = performance.now();
      const answer = await (await fetch(`${url}/api/tasks`, { headers })).json();
      return { ms: Math.round(performance.now() - began), seq: answer.seq, count: answer.tasks.length };
    };
    const first = await list();
    const second = await list();
    const quiet = usage(server.pid);
    const listener = await listen(url, headers, second.seq);
    const idleBefore = usage(server.pid);
    await sleep(3000);
    const idle = share(idleBefore, usage(server.pid));
    const before = usage(server.pid);
    const sent = await talk();
    const busy = usage(server.pid);
    const during = await list();
    await until(() => listener.events >= sent);
    return {
      tasks,
      live,
      listFirstMs: first.ms,
      listAgainMs: second.ms,
      listUnderLoadMs: during.ms,
      sent,
      received: listener.events,
      outOfOrder: listener.wrong,
      rows: listener.rows,
      resets: listener.resets,
      delayMs: { median: percentile(listener.delays, 50), p99: percentile(listener.delays, 99) },
      cpuIdlePercent: idle,
      cpuBusyPercent: share(before, busy),
      memoryMb: { listed: quiet.rssMb, after: usage(server.pid).rssMb, most: usage(server.pid).mostMb },
    };
  } finally {
    server.kill('SIGKILL');
  }
}

/** Every live task says something so and so often; returns how much was said in all. */
async function talk() {
  let sent = 0;
  const began = Date.now();
  for (let round = 0; round < perSecond * seconds; round++) {
    for (let i = 0; i < live; i++) {
      const id = `task-${i}`;
      const seq = (seqs.get(id) ?? 1) + 1;
      seqs.set(id, seq);
      const event = {
        seq,
        at: new Date().toISOString(),
        task: id,
        type: 'agent.said',
        text: 'x'.repeat(300),
        prev: '',
      };
      appendFileSync(join(state, 'tasks', id, 'events.jsonl'), `${JSON.stringify(event)}\n`);
      sent += 1;
    }
    await sleep(Math.max(0, began + ((round + 1) * 1000) / perSecond - Date.now()));
  }
  return sent;
}

async function listen(url, headers, seq) {
  const seen = { events: 0, wrong: 0, rows: 0, resets: 0, delays: [] };
  const last = new Map();
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/live`, { headers });
  socket.addEventListener('message', ({ data }) => {
    const message = JSON.parse(data);
    if (message.type === 'task') seen.rows += 1;
    if (message.type === 'reset') seen.resets += 1;
    if (message.type !== 'event') return;
    seen.events += 1;
    if (message.seq !== (last.get(message.topic) ?? 1) + 1) seen.wrong += 1;
    last.set(message.topic, message.seq);
    seen.delays.push(Date.now() - Date.parse(message.data.at));
  });
  await new Promise((resolve) => socket.once('open', resolve));
  const subscribe = (topic, after) => socket.send(JSON.stringify({ do: 'subscribe', topic, after }));
  subscribe('tasks', seq);
  subscribe('projects', null);
  for (let i = 0; i < live; i++) subscribe(`task:task-${i}`, 1);
  return seen;
}

function makeTask(id, isLive) {
  const directory = join(state, 'tasks', id);
  mkdirSync(directory, { recursive: true });
  const base = '0'.repeat(40);
  const limits = { maxSeconds: null, maxCostMicros: null, maxTurns: null, parallel: 4 };
  const goal = { text: `Do ${id}`, agent: 'demo', interactive: false, base, baseRef: null, flags: {}, ...limits };
  const task = { version: 1, id, name: id, kind: 'agent', goal, project: home, git: true, command: ['demo'] };
  writeFileSync(join(directory, 'task.json'), JSON.stringify({ ...task, createdAt: new Date(0).toISOString() }));
  const run = {
    version: 1,
    state: isLive ? 'running' : 'no-changes',
    startedAtMs: 1,
    exitCode: null,
    label: '',
    workspace: 'overlay',
    hidden: [],
    revealed: [],
    base,
    objectFormat: 'sha1',
    runner: identity(runner.pid),
    user: { uid: 0, gid: 0 },
    settled: [],
    ignoredDiscarded: false,
    number: 1,
    result: null,
  };
  writeFileSync(join(directory, 'run.json'), JSON.stringify(run));
  const event = { seq: 1, at: new Date(0).toISOString(), task: id, type: 'run.queued', prev: '' };
  writeFileSync(join(directory, 'events.jsonl'), `${JSON.stringify(event)}\n`);
}

function identity(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return { pid, startTicks: `${readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()}:${fields[19]}` };
}

function usage(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1].split(' ');
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const mb = (name) => Math.round(Number(new RegExp(`${name}:\\s+(\\d+)`).exec(status)[1]) / 1024);
  return {
    cpuMs: (Number(fields[11]) + Number(fields[12])) * 10,
    at: Date.now(),
    rssMb: mb('VmRSS'),
    mostMb: mb('VmHWM'),
  };
}

function share(before, after) {
  return Math.round((100 * (after.cpuMs - before.cpuMs)) / (after.at - before.at));
}

function percentile(values, share) {
  return values.toSorted((a, b) => a - b)[Math.floor((values.length * share) / 100)] ?? null;
}

async function until(holds) {
  for (const end = Date.now() + 20_000; !holds() && Date.now() < end;) await sleep(50);
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
