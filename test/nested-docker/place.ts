// test/nested-docker/place.ts: a developer's machine with nested Docker, and a registry on loopback instead of Docker Hub.
// uses: compose
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  AGS,
  asMember,
  CALLERS,
  createMachine,
  giveTo,
  shareReadiness,
  type Caller,
  type Machine,
} from '../harness.ts';
import { HAS_ENGINE } from '../conformance/engine.ts';
import { engine } from '../images/tiny-image.ts';
import { HAS_HUB, type ImageHub } from './image-hub.ts';

export const CAN_NEST = HAS_ENGINE && HAS_HUB;
const CLIENTS = ['/usr/bin', '/usr/lib/docker/cli-plugins', '/usr/libexec/docker/cli-plugins'];
const HAS_COMPOSE = CLIENTS.some((dir) => existsSync(join(dir, 'docker-compose')));
if (CAN_NEST && !HAS_COMPOSE && process.env['AGS_REQUIRE_ALL'] !== undefined)
  throw new Error('docker-compose is missing');
export const CAN_COMPOSE = CAN_NEST && HAS_COMPOSE;
/** Callers with access to Docker: root, and a member of the group "docker", which only root can start. */
export const ENGINE_CALLERS: readonly Caller[] = process.getuid?.() === 0 ? CALLERS : [];

/** The user's configuration names the registry. */
export function createPlace(caller: Caller, hub: ImageHub, more = ''): Machine {
  // An engine does not see the /tmp of the tests, and inside /var/tmp is /tmp.
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

/** Starts ags as the caller, a member of the group "docker". */
export function startAgs(
  machine: Machine,
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): ChildProcess {
  shareReadiness(machine);
  const [file, ...become] = asMember(machine.uid, 'docker');
  const argv = [...become, process.execPath, AGS, ...args];
  return spawn(file, argv, { cwd: machine.project, env: { ...machine.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
}

export interface Said {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `onOutput` gets the whole stdout so far at each chunk. */
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

/** The containers and volumes of a task. */
export const left = (task: string): string[] =>
  ['ps --all --quiet', 'volume ls --quiet'].flatMap((list) =>
    engine(...list.split(' '), '--filter', `label=ags.run=${task}`)
      .split('\n')
      .filter((line) => line !== ''),
  );

/** Parses the lines that `try` prints: "name = outcome". */
export function outcomes(stdout: string): Record<string, string> {
  return Object.fromEntries(
    stdout.split('\n').flatMap((line) => {
      const at = line.indexOf(' = ');
      return at < 0 ? [] : [[line.slice(0, at), line.slice(at + 3)] as const];
    }),
  );
}

/** A shell function for scripts: `try name command...` prints the exit code and the last line of a command. */
export const TRY = `try() { what=$1; shift; said=$("$@" 2>&1 </dev/null); code=$?; echo "$what = $code $(echo "$said" | tail -n 1)"; }
`;
