// bench/soak-look.mjs: samples a machine with many tasks: memory of its processes, disk usage, and the time of a list.
import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';

/** A process that is not running, such as a runner between two tasks, has no figure. */
export async function lookAt({ actor, state, project, list }) {
  const all = processes(actor.home);
  const runners = all.filter(({ words }) => words.includes('__run'));
  const server = all.find(({ words }) => words.includes('serve'));
  const began = performance.now();
  await list();
  const listMs = performance.now() - began;
  const most = (values) => (values.length === 0 ? undefined : Math.max(...values));
  return {
    'memory of the server, MB': server && memory(server.pid),
    'descriptors of the server': server && descriptors(server.pid),
    'memory of a runner, the most, MB': most(runners.map(({ pid }) => memory(pid)).filter((value) => value > 0)),
    'descriptors of a runner, the most': most(runners.map(({ pid }) => descriptors(pid)).filter((value) => value > 0)),
    'processes of ours': all.length,
    'state directory, MB': size(state),
    "the user's repository, MB": size(join(project, '.git')),
    'time of ags list, ms': listMs,
  };
}

/** All processes with this home: commands, runners, servers, and those in their sandboxes. */
export function processes(home) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .flatMap((pid) => {
      const words = read(`/proc/${pid}/cmdline`).split('\0');
      const own = read(`/proc/${pid}/environ`).split('\0').includes(`HOME=${home}`);
      return own && words[0] !== '' ? [{ pid, words }] : [];
    });
}

/** Control groups with this word in their names, and mounts below this directory. */
export function remains(word, directory) {
  const groups = spawnSync('find', ['/sys/fs/cgroup', '-maxdepth', '5', '-type', 'd', '-name', `ags-${word}*`], {
    encoding: 'utf8',
  });
  const mounts = read('/proc/self/mountinfo')
    .split('\n')
    .filter((line) => line.includes(directory));
  return [...groups.stdout.split('\n').filter((line) => line !== ''), ...mounts];
}

const memory = (pid) => Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0) / 1024;

function descriptors(pid) {
  try {
    return readdirSync(`/proc/${pid}/fd`).filter((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`) !== '').length;
  } catch {
    // It has just ended.
    return 0;
  }
}

/** du reports files that vanish meanwhile as errors, and its total is still correct. */
function size(directory) {
  const done = spawnSync('du', ['-sk', directory], { encoding: 'utf8' });
  return Number.parseInt(done.stdout, 10) / 1024 || 0;
}

function read(path) {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return '';
  }
}

export const git = (actor, cwd, ...args) =>
  execFileSync('git', args, { ...actor.identity, cwd, env: actor.env, encoding: 'utf8' }).trim();
