// bench/gateway/place.mjs: the place for measuring proxies: a network namespace with only loopback, its own /etc/hosts, the origin and the
// client. Invariant: `stop` and the end of the process stop everything that was started here.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { hostsFile, serveNames } from './names.mjs';

export const PORTS = { plain: 8080, tls: 443, names: 5300 };

/** The command that runs a program in such a place, and the limit of its descriptors. */
export function inPlace(argv) {
  const more = ['prlimit', `--nofile=${FILES}:${FILES}`];
  const mayRaise = spawnSync(more[0], [...more.slice(1), 'true'], { stdio: 'ignore' }).status === 0;
  const isRoot = process.getuid() === 0;
  return {
    files: mayRaise
      ? FILES
      : Number(/^Max open files +\S+ +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'))?.[1] ?? 1024),
    argv: [
      ...(mayRaise ? more : []),
      'unshare',
      ...(isRoot ? [] : ['--user', '--map-root-user']),
      '--mount',
      '--net',
      // The kernel ends everything in the namespace with its first process.
      '--pid',
      '--fork',
      '--kill-child',
      '--mount-proc',
      '--',
      ...argv,
    ],
  };
}

// A proxy needs twenty thousand descriptors for ten thousand tunnels.
const FILES = 65_536;

export function buildLoad(directory) {
  const program = join(directory, 'load');
  execFileSync('cc', ['-O2', '-o', program, fileURLToPath(new URL('load.c', import.meta.url))], {
    stdio: ['ignore', 2, 2],
  });
  return program;
}

/** `isRoot`: root of the machine, not only in this place. */
export async function openPlace({ dir, load, isRoot }) {
  prepareNetwork({ dir, load, hosts: hostsFile('127.0.0.1') });
  const programs = createPrograms(dir);
  const origin = programs.start([load, 'origin', String(PORTS.plain), String(PORTS.tls)]);
  await saysLine(origin, 'ready');
  const names = await serveNames(PORTS.names);
  return {
    dir,
    load,
    isRoot,
    ...programs,
    async close() {
      names.close();
      await programs.stop(origin);
    },
  };
}

export function prepareNetwork({ dir, load, hosts }) {
  execFileSync(load, ['loopback', 'up']);
  // Closed connections keep their ports for a minute.
  writeFileSync('/proc/sys/net/ipv4/ip_local_port_range', '10000 65000');
  writeFileSync(join(dir, 'hosts'), hosts);
  execFileSync('mount', ['--bind', join(dir, 'hosts'), '/etc/hosts']);
}

export function createPrograms(dir) {
  const started = new Set();
  process.on('exit', () => {
    for (const child of started) child.kill('SIGKILL');
  });
  return {
    /** Starts a program that keeps running. */
    start(argv, { env = {}, ...options } = {}) {
      const child = spawn(argv[0], argv.slice(1), {
        env: { PATH: process.env.PATH, HOME: dir, LANG: 'C.UTF-8', ...env },
        stdio: ['ignore', 'pipe', 'inherit'],
        ...options,
      });
      started.add(child);
      child.once('exit', () => started.delete(child));
      return child;
    },
    async stop(child) {
      if (child.exitCode !== null || child.signalCode !== null) return;
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      const force = setTimeout(() => child.kill('SIGKILL'), 3000);
      await gone;
      clearTimeout(force);
    },
  };
}

/** Waits for this line of the program's output; an error if it ends before. */
export function saysLine(child, line) {
  return new Promise((resolve, reject) => {
    let said = '';
    child.stdout.on('data', (data) => {
      said += data;
      if (said.split('\n').includes(line)) resolve();
    });
    child.once('exit', (code, signal) =>
      reject(new Error(`${child.spawnargs.join(' ')} ended (${code ?? signal}) before it said "${line}": ${said}`)),
    );
  });
}

/** Waits until the port accepts connections. */
export async function listensOn(port, child) {
  for (let tries = 0; tries < 500; tries += 1) {
    if (child.exitCode !== null) throw new Error(`${child.spawnargs.join(' ')} ended with ${child.exitCode}`);
    const reached = await new Promise((resolve) => {
      const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => resolve(false));
      socket.on('connect', () => socket.destroy());
    });
    if (reached) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`nothing listens on ${port}`);
}

/** Runs the client. A single failed tunnel is an error, because refusing is fast. */
export async function ask(place, mode, how) {
  const args = Object.entries(how).map(([key, value]) => `${key}=${value}`);
  const child = spawn(place.load, [mode, ...args], { stdio: ['ignore', 'pipe', 'inherit'] });
  let text = '';
  child.stdout.on('data', (data) => {
    text += data;
  });
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`load ${mode} ${args.join(' ')} failed (${code}): ${text}`);
  return JSON.parse(text);
}

/** Verifies that the proxy enforces its list, because one that does not would be faster. */
export async function mustRefuse(place, via, to) {
  const child = spawn(place.load, ['once', `via=${via}`, `to=${to}`], { stdio: 'ignore' });
  const code = await new Promise((resolve) => child.once('close', resolve));
  if (code === 0) throw new Error(`${via} let ${to} through, which is not on its list`);
}

/** Opens tunnels and holds them until its input closes. */
export async function hold(place, how) {
  const args = Object.entries(how).map(([key, value]) => `${key}=${value}`);
  const child = spawn(place.load, ['idle', ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
  await saysLine(child, 'held');
  return {
    async release() {
      const gone = new Promise((resolve) => child.once('exit', resolve));
      child.stdin.end();
      await gone;
    },
  };
}

/** A process and all its descendants. */
export function tree(pid) {
  const parents = new Map();
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]));
    } catch {
      // It has ended meanwhile.
    }
  }
  const found = [pid];
  for (const known of found) for (const [child, parent] of parents) if (parent === known) found.push(child);
  return found;
}

/** Resident memory of the processes, in kB. */
export function residentKb(pids) {
  return pids.reduce(
    (sum, pid) => sum + Number(/^Rss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))[1]),
    0,
  );
}
