// scripts/engine.mjs: starts a Docker daemon for the tests if none is running. It has no network, because sandboxes have none.
// Never starts a second daemon: with --bridge=none it would remove the bridge of the first.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

const NO_NETWORK = ['--bridge=none', '--iptables=false', '--ip-forward=false', '--ip-masq=false'];
const LOG = '/var/log/ags-test-engine.log';
const ENGINE_PID = '/var/run/docker.pid';
const CONTAINERD_PID = '/var/run/docker/containerd/containerd.pid';
const WAIT_MS = 90_000;

export const engineAnswers = () =>
  spawnSync('docker', ['version', '--format', '{{.Server.Version}}'], { stdio: 'ignore' }).status === 0;

/** Returns a function that stops the daemon; null: one was running already, or none can run here. */
export async function startEngine() {
  if (engineAnswers() || process.getuid?.() !== 0) return null;
  // A daemon that was just started belongs to someone else; wait for it.
  for (const end = Date.now() + WAIT_MS; runs(ENGINE_PID, 'dockerd') && Date.now() < end; await sleep(500))
    if (engineAnswers()) return null;
  // A killed daemon leaves its pid file, which would block or delay the next one.
  if (!runs(ENGINE_PID, 'dockerd')) rmSync(ENGINE_PID, { force: true });
  if (!runs(CONTAINERD_PID, 'containerd')) rmSync(CONTAINERD_PID, { force: true });
  const from = sizeOf(LOG);
  const log = openSync(LOG, 'a');
  const engine = spawn('dockerd', NO_NETWORK, { detached: true, stdio: ['ignore', log, log], cwd: '/' });
  closeSync(log);
  // Docker is not installed.
  engine.on('error', () => undefined);
  const lives = () => engine.pid !== undefined && engine.exitCode === null;
  for (const end = Date.now() + WAIT_MS; lives() && Date.now() < end; await sleep(200))
    if (engineAnswers()) {
      engine.unref();
      return () => stop(engine);
    }
  const said = readFileSync(LOG, 'utf8').slice(from).split('\n').slice(-15).join('\n');
  process.stderr.write(`test: no Docker engine could be started here. The end of ${LOG}:\n${said}\n`);
  engine.kill();
  return null;
}

/** Whether the pid file names a live process of this program; a zombie has no executable. */
function runs(pidFile, program) {
  try {
    return basename(readlinkSync(`/proc/${readFileSync(pidFile, 'utf8').trim()}/exe`)).split(' ')[0] === program;
  } catch {
    return false;
  }
}

const sizeOf = (file) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;

/** The timer must not keep Node alive after the daemon has exited. */
async function stop(engine) {
  if (engine.exitCode !== null || engine.signalCode !== null) return;
  engine.ref();
  const gone = once(engine, 'exit').then(() => true);
  engine.kill('SIGTERM');
  const isGone = await Promise.race([gone, sleep(WAIT_MS, false, { ref: false })]);
  if (isGone) return;
  engine.kill('SIGKILL');
  await gone;
}
