// scripts/engine.mjs: a Docker engine for the tests, where none is running. It gets no network of its own: sandboxes have none.
// Never a second one beside another: with --bridge=none it would take the first one's bridge away.
import { spawn, spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const NO_NETWORK = ['--bridge=none', '--iptables=false', '--ip-forward=false', '--ip-masq=false'];
const LOG = '/var/log/ags-test-engine.log';
const ENGINE_PID = '/var/run/docker.pid';
const CONTAINERD_PID = '/var/run/docker/containerd/containerd.pid';
const WAIT_MS = 90_000;

const answers = () =>
  spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { stdio: 'ignore' }).status === 0;

/** Resolves with what stops it again; null: it was running before, or cannot run here. */
export async function startEngine() {
  if (answers() || process.getuid?.() !== 0) return null;
  // One that has only just been started is somebody's: it gets its time.
  for (const end = Date.now() + WAIT_MS; runs(ENGINE_PID, 'dockerd') && Date.now() < end; await sleep(500))
    if (answers()) return null;
  // What was killed has left its number, which would keep the next from starting, or have it wait for who is not there.
  if (!runs(ENGINE_PID, 'dockerd')) rmSync(ENGINE_PID, { force: true });
  if (!runs(CONTAINERD_PID, 'containerd')) rmSync(CONTAINERD_PID, { force: true });
  const from = sizeOf(LOG);
  const log = openSync(LOG, 'a');
  const engine = spawn('dockerd', NO_NETWORK, { detached: true, stdio: ['ignore', log, log], cwd: '/' });
  closeSync(log);
  // Where it is not installed: there is no process then.
  engine.on('error', () => undefined);
  const lives = () => engine.pid !== undefined && engine.exitCode === null;
  for (const end = Date.now() + WAIT_MS; lives() && Date.now() < end; await sleep(200))
    if (answers()) {
      engine.unref();
      return () => stop(engine);
    }
  const said = readFileSync(LOG, 'utf8').slice(from).split('\n').slice(-15).join('\n');
  process.stderr.write(`test: no Docker engine could be started here. The end of ${LOG}:\n${said}\n`);
  engine.kill();
  return null;
}

/** Who is dead and not buried has a number, but no program any more. */
function runs(pidFile, program) {
  try {
    return basename(readlinkSync(`/proc/${readFileSync(pidFile, 'utf8').trim()}/exe`)).split(' ')[0] === program;
  } catch {
    return false;
  }
}

const sizeOf = (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

async function stop(engine) {
  const gone = new Promise((resolve) => engine.once('exit', resolve));
  engine.kill('SIGTERM');
  await Promise.race([gone, sleep(WAIT_MS)]);
}
