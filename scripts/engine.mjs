// scripts/engine.mjs: a Docker engine for the tests, where none is running. It gets no network of its own: sandboxes have none.
// Never a second one beside another: with --bridge=none it would take the first one's bridge away.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const NO_NETWORK = ['--bridge=none', '--iptables=false', '--ip-forward=false', '--ip-masq=false'];
const LOG = '/var/log/ags-test-engine.log';
const WAIT_MS = 30_000;

const answers = () =>
  spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { stdio: 'ignore' }).status === 0;

/** Resolves with what stops it again; null: it was running before, or cannot run here. */
export async function startEngine() {
  if (answers() || process.getuid?.() !== 0 || existsSync('/run/docker.pid')) return null;
  const log = openSync(LOG, 'a');
  const engine = spawn('dockerd', NO_NETWORK, { detached: true, stdio: ['ignore', log, log], cwd: '/' });
  closeSync(log);
  // Where it is not installed: there is no process then.
  engine.on('error', () => undefined);
  const runs = () => engine.pid !== undefined && engine.exitCode === null;
  for (const end = Date.now() + WAIT_MS; runs() && Date.now() < end; await sleep(200))
    if (answers()) {
      engine.unref();
      return () => stop(engine);
    }
  process.stderr.write(`test: no Docker engine could be started here, see ${LOG}\n`);
  engine.kill();
  return null;
}

async function stop(engine) {
  const gone = new Promise((resolve) => engine.once('exit', resolve));
  engine.kill('SIGTERM');
  await Promise.race([gone, sleep(WAIT_MS)]);
}
