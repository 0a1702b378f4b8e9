// scripts/sandbox-works.mjs: whether a native sandbox can start here, and if not, the reason and the fix of `ags doctor`.
import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { has, installing, NEEDED, root } from './setup.mjs';

const LEAST = ['--unshare-all', '--ro-bind', '/', '/', '--proc', '/proc', '--dev', '/dev', '--', 'true'];
const INSTEAD = 'or use containers instead: --backend docker';

/** Null: it can. Otherwise one sentence with the reason, the fix and an alternative. */
export function whyNoSandbox(uid = process.getuid()) {
  const missing = NEEDED.filter((program) => !has(program));
  if (missing.length > 0) {
    const { command } = installing(missing);
    return `No sandbox can be started here: ${missing.join(', ')} is not installed; run: sudo ${command}; ${INSTEAD}.`;
  }
  const as = process.getuid() === 0 ? { uid, gid: uid } : {};
  // Root mounts by itself and needs more than bubblewrap does, so only doctor can tell.
  if (uid !== 0 && spawnSync('bwrap', LEAST, { cwd: '/', stdio: 'ignore', ...as }).status === 0) return null;
  const home = mkdtempSync(join(tmpdir(), 'ags-probe-'));
  try {
    if (uid !== process.getuid()) chownSync(home, uid, uid);
    const env = { HOME: home, PATH: process.env.PATH };
    const doctor = [join(root, 'bin/ags.cjs'), 'doctor', '--json'];
    const { status, stdout } = spawnSync(process.execPath, doctor, { cwd: home, env, encoding: 'utf8', ...as });
    return status === 0 ? null : sentence(stdout);
  } catch (error) {
    if (error.code !== 'EINVAL') throw error;
    return `No sandbox can be started here: the container around this has no other users; run it outside; ${INSTEAD}.`;
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** The first missing item of doctor. */
export function sentence(json) {
  let checks = [];
  try {
    checks = JSON.parse(json).checks;
  } catch {
    // Without output of doctor, suggest running it.
  }
  const { message = 'a test sandbox does not start', fix = 'See: ./ags doctor' } =
    checks.find(({ status }) => status === 'missing') ?? {};
  const [why, how] = [message, fix].map((text) => text.replace(/\.$/, ''));
  return `No sandbox can be started here: ${why}; ${how.charAt(0).toLowerCase()}${how.slice(1)}; ${INSTEAD}.`;
}
