// scripts/podman-user.mjs: an ordinary user of its own for whoever tries Podman out: one that the machine knows, with ids to give
// to the users of containers, a home and a runtime directory. Everything goes with it.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** As root only. Of two with one name, whoever came first would be taken away from the other. */
export function createUser(name) {
  removeUser(name);
  retried('useradd', ['--no-create-home', '--shell', '/bin/sh', name]);
  for (const file of ['subuid', 'subgid'])
    if (!readFileSync(`/etc/${file}`, 'utf8').includes(`${name}:`))
      retried('usermod', [`--add-${file}s`, '300000000-300065535', name]);
  const uid = Number(execFileSync('id', ['-u', name], { encoding: 'utf8' }));
  // Podman's own files are many and small; its pause process must be one that sees this directory.
  const home = mkdtempSync('/tmp/ags-podman-');
  const runtime = join(home, 'runtime');
  mkdirSync(runtime, { mode: 0o700 });
  for (const path of [home, runtime]) chownSync(path, uid, uid);
  const env = { HOME: home, XDG_RUNTIME_DIR: runtime };
  return {
    uid,
    userName: name,
    home,
    env,
    [Symbol.dispose]() {
      const inside = { cwd: '/', env: { ...env, PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, uid, gid: uid };
      // What belongs to its ids can be removed by it only, and then its namespaces.
      spawnSync('podman', ['unshare', 'rm', '-rf', join(home, '.local')], inside);
      spawnSync('podman', ['system', 'migrate'], inside);
      rmSync(home, { recursive: true, force: true });
      removeUser(name);
    },
  };
}

function removeUser(name) {
  if (spawnSync('id', [name]).status === 0) retried('userdel', ['--force', name]);
}

/** Others may be changing the list of users at the same moment. */
function retried(program, args) {
  for (let left = 20; ; left -= 1) {
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status === 0) return;
    if (left === 0 || !/lock/.test(stderr)) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
    spawnSync('sleep', ['0.2']);
  }
}
