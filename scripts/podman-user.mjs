// scripts/podman-user.mjs: creates an ordinary user for trying Podman: with an account, subordinate IDs for containers, a home and a runtime
// directory. All of it is removed afterwards.
import { execFileSync, spawnSync } from 'node:child_process';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';

/** Root only. A second user with the same name would replace the first. */
export function createUser(name) {
  removeUser(name);
  retried('useradd', ['--no-create-home', '--shell', '/bin/sh', name]);
  for (const file of ['subuid', 'subgid'])
    if (!readFileSync(`/etc/${file}`, 'utf8').includes(`${name}:`))
      retried('usermod', [`--add-${file}s`, '300000000-300065535', name]);
  const uid = Number(execFileSync('id', ['-u', name], { encoding: 'utf8' }));
  // Podman has many small files, and its pause process must see this directory.
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
      // Only the user can remove files of its subordinate IDs; `system migrate` then ends its namespaces.
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

/** Retries, because another process may lock the list of users. */
function retried(program, args) {
  for (let left = 20; ; left -= 1) {
    const { status, stderr } = spawnSync(program, args, { encoding: 'utf8' });
    if (status === 0) return;
    if (left === 0 || !/lock/.test(stderr)) throw new Error(`${program} ${args.join(' ')}: ${stderr}`);
    spawnSync('sleep', ['0.2']);
  }
}
