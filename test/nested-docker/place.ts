// test/nested-docker/place.ts: a developer's machine whose tasks have engines of their own, with a registry on loopback for Docker Hub.
// uses: compose
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { AGS, CALLERS, createMachine, giveTo, shareReadiness, type Caller, type Machine } from '../harness.ts';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { HAS_HUB, type ImageHub } from './image-hub.ts';

export const CAN_NEST = HAS_ENGINE && HAS_HUB;
const CLIENTS = ['/usr/bin', '/usr/lib/docker/cli-plugins', '/usr/libexec/docker/cli-plugins'];
const HAS_COMPOSE = CLIENTS.some((dir) => existsSync(join(dir, 'docker-compose')));
if (CAN_NEST && !HAS_COMPOSE && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('docker-compose is missing');
export const CAN_COMPOSE = CAN_NEST && HAS_COMPOSE;
/** Whoever may use an engine: root, and a member of the group "docker", who only root can make here. */
export const ENGINE_CALLERS: readonly Caller[] = process.getuid?.() === 0 ? CALLERS : [];

/** The user's own configuration says where images come from. */
export function createPlace(caller: Caller, hub: ImageHub, more = ''): Machine {
  // An engine does not see the /tmp of the tests; inside, /var/tmp is /tmp.
  const machine = createMachine(caller, { disk: '/var/lib' });
  const dir = join(machine.home, '.config/ags');
  mkdirSync(dir, { recursive: true });
  writeFileSync(
    join(dir, 'config.yaml'),
    `docker:\n  enabled: true\n  registries: ["docker.io=${hub.origin}"]\nlimits: { memory: 2g }\n${more}`,
  );
  giveTo(join(machine.home, '.config'), machine.uid);
  return machine;
}

/** As a member of the group, which Node alone cannot make of a child. */
export function startAgs(
  machine: Machine,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  shareReadiness(machine);
  const become =
    machine.caller === 'root'
      ? []
      : ['setpriv', `--reuid=${machine.uid}`, `--regid=${machine.uid}`, '--groups=docker', '--'];
  const [file = '', ...rest] = [...become, process.execPath, AGS, ...args];
  return spawn(file, rest, { cwd: machine.project, env: { ...machine.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
}

export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `onOutput` hears everything that was said so far, whenever there is more. */
export function runAgs(
  machine: Machine,
  args: readonly string[],
  { env = {}, onOutput }: { env?: Readonly<Record<string, string>>; onOutput?: (stdout: string) => void } = {},
): Promise<Said> {
  const child = startAgs(machine, args, env);
  child.stdin?.end();
  let [stdout, stderr] = ['', ''];
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8');
    onOutput?.(stdout);
  });
  child.stderr?.on('data', (chunk: Buffer) => (stderr += chunk.toString('utf8')));
  return new Promise((resolve) =>
    child.on('close', (code) => {
      shareReadiness(machine);
      resolve({ code, stdout, stderr });
    }),
  );
}

/** Each line of the answers: "what = outcome". */
export function outcomes(stdout: string): Record<string, string> {
  return Object.fromEntries(
    stdout.split('\n').flatMap((line) => {
      const at = line.indexOf(' = ');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 3)] as const];
    }),
  );
}

/** In front of every script: `try what command...` prints how it ended and its last line. */
export const TRY = `try() { what=$1; shift; said=$("$@" 2>&1 </dev/null); code=$?; echo "$what = $code $(echo "$said" | tail -n 1)"; }
`;
