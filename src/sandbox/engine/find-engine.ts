// sandbox/engine/find-engine.ts: finds an engine that this caller may use, and how to call it. Also checks its runtime.
import { accessSync, constants, existsSync, readFileSync } from 'node:fs';
import { errorCode } from '../../lib/error-code.ts';
import { AgsError } from '../../protocol/errors.ts';
import { callEngine, type Engine } from './engine.ts';
import { dockerAddress } from './remote-engine.ts';
import { ENGINE_KINDS, ENGINE_NAMES, type EngineName } from './engine-kinds.ts';
import { findProgram, installCommand } from '../programs.ts';

type Env = Readonly<Record<string, string | undefined>>;

export interface EngineCaller {
  readonly env: Env;
  readonly uid: number;
  readonly userName: string;
}

/** A local engine. `named`: the user asked for it, so a missing one is an error; otherwise it gives null. */
export function findEngine(name: EngineName, caller: EngineCaller, named: boolean): Engine | null {
  const found = findAnyEngine(name, caller, named);
  if (found === null || found.far === null) return found;
  if (!named) return null;
  throw new AgsError('backend.unavailable', `This needs an engine on this machine, but Docker is at ${found.far}.`, {
    hint: 'Use the local one: docker context use default, or unset DOCKER_HOST',
  });
}

/** A local or remote engine, for callers that mount nothing of this machine. */
export function findAnyEngine(name: EngineName, caller: EngineCaller, named: boolean): Engine | null {
  const found = lookFor(name, caller);
  if (!('message' in found)) return found;
  if (!named) return null;
  throw new AgsError('backend.unavailable', found.message, { hint: found.hint });
}

/** For features that need an engine: the chosen one, or else the first that this user may use. */
export function needEngine(choice: string, caller: EngineCaller): Engine {
  const chosen = ENGINE_NAMES.find((name) => name === choice);
  const found =
    chosen === undefined ? ENGINE_NAMES.flatMap((name) => findAnyEngine(name, caller, false) ?? [])[0] : undefined;
  const engine = found ?? findAnyEngine(chosen ?? 'docker', caller, true);
  if (engine === null) throw new Error('findAnyEngine neither found the engine nor threw');
  return engine;
}

interface Problem {
  readonly message: string;
  readonly hint: string;
}

function lookFor(name: EngineName, caller: EngineCaller): Engine | Problem {
  const { title, packages, remote } = ENGINE_KINDS[name];
  const program = findProgram(name);
  if (program === null)
    return {
      message: `${title} is not installed.`,
      hint: `Install it: ${installCommand(packages)}, or use: --backend native`,
    };
  const leads = remote.filter((variable) => (caller.env[variable] ?? '') !== '');
  if (leads.length > 0)
    return {
      message: 'The engine must run on this machine.',
      hint: `Unset ${leads.join(' and ')}, or use: --backend native`,
    };
  return name === 'docker' ? findDocker(program, caller) : findPodman(program, caller);
}

const UNIX = 'unix://';

function findDocker(program: string, { env }: EngineCaller): Engine | Problem {
  const address = dockerAddress(env);
  if (typeof address !== 'string') return { message: address.problem, hint: 'See which there are: docker context ls' };
  const engine = { name: 'docker', program, options: [], env: engineEnv('docker', env), rootless: false } as const;
  if (!address.startsWith(UNIX))
    return { ...engine, env: { ...engine.env, ...keyAgent(env) }, socket: null, far: address };
  const socket = address.slice(UNIX.length);
  return socketProblem(socket) ?? { ...engine, socket, far: null };
}

/** For an engine behind ssh. */
function keyAgent(env: Env): Record<string, string> {
  const socket = env['SSH_AUTH_SOCK'];
  return socket === undefined ? {} : { SSH_AUTH_SOCK: socket };
}

function socketProblem(socket: string): Problem | null {
  try {
    accessSync(socket, constants.R_OK | constants.W_OK);
    return null;
  } catch (error) {
    return errorCode(error) === 'EACCES'
      ? {
          message: `You have no access to Docker: ${socket} is closed to you.`,
          hint: 'Join the group "docker" (its members are as powerful as root), or use: --backend native',
        }
      : { message: 'Docker is installed but not running.', hint: 'Start it: sudo systemctl start docker' };
  }
}

function findPodman(program: string, caller: EngineCaller): Engine | Problem {
  const rootless = caller.uid !== 0;
  const problem = rootless ? idsProblem(caller) : null;
  if (problem !== null) return problem;
  return {
    name: 'podman',
    program,
    options: podmanOptions(),
    env: { ...engineEnv('podman', caller.env), ...messageBus(caller.env) },
    socket: null,
    rootless,
    far: null,
  };
}

/** Checks the subordinate IDs of the user. If a directory service provides them, Podman checks them itself. */
function idsProblem({ uid, userName }: EngineCaller): Problem | null {
  const install = `Install it: ${installCommand(['uidmap'])}`;
  if (findProgram('newuidmap') === null)
    return { message: 'Podman needs newuidmap, which is not installed.', hint: install };
  if (/^subid:/m.test(readIfThere('/etc/nsswitch.conf'))) return null;
  const mine = (line: string): boolean => line.startsWith(`${userName}:`) || line.startsWith(`${uid}:`);
  const lacking = ['/etc/subuid', '/etc/subgid'].filter((file) => !readIfThere(file).split('\n').some(mine));
  if (lacking.length === 0) return null;
  return {
    message: `Podman has no user IDs for your containers: ${lacking.join(' and ')} do not name you.`,
    hint: `Run: sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 ${userName} && podman system migrate`,
  };
}

/** Without systemd Podman has to create cgroups itself; on cgroup v1 its default runtime may refuse to start. */
function podmanOptions(): string[] {
  const runc = existsSync('/sys/fs/cgroup/cgroup.controllers') ? null : findProgram('runc');
  return [...(hasSystemd() ? [] : ['--cgroup-manager', 'cgroupfs']), ...(runc === null ? [] : ['--runtime', runc])];
}

/** The bus address for requests to the user's service manager, which creates cgroups. */
function messageBus(env: Env): Record<string, string> {
  const address = env['DBUS_SESSION_BUS_ADDRESS'];
  return address === undefined || !hasSystemd() ? {} : { DBUS_SESSION_BUS_ADDRESS: address };
}

function hasSystemd(): boolean {
  return existsSync('/run/systemd/system');
}

function engineEnv(name: EngineName, env: Env): Record<string, string> {
  const passed = Object.entries(env).filter(([variable]) => ENGINE_KINDS[name].variables.test(variable));
  return {
    PATH: '/usr/sbin:/usr/bin:/sbin:/bin',
    ...Object.fromEntries(passed.map(([variable, value]) => [variable, value ?? ''])),
  };
}

function readIfThere(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return '';
  }
}

/** Throws if the engine does not have the runtime, before anything is created. */
export async function checkRuntime(engine: Engine | null, runtime: string): Promise<void> {
  if (engine === null)
    throw new AgsError(
      'backend.unavailable',
      `The runtime ${runtime} needs a container: the native sandbox has none.`,
      {
        hint: 'Use --backend docker, or leave "runtime" out of the configuration: ags config runtime',
      },
    );
  const known = await listRuntimes(engine);
  if (known.includes(runtime)) return;
  throw new AgsError(
    'backend.unavailable',
    `${engine.name} has no runtime called ${runtime}; it has ${known.join(', ')}.`,
    {
      hint: `Add it to the engine${engine.socket === null ? '' : ' (runtimes in daemon.json)'}, or choose another: --runtime runc`,
    },
  );
}

async function listRuntimes(engine: Engine): Promise<string[]> {
  const { runtimes } = ENGINE_KINDS[engine.name];
  if (runtimes !== null) return runtimes.filter((name) => findProgram(name) !== null);
  const said = await callEngine(engine, ['info', '--format', '{{json .Runtimes}}']);
  const found: unknown = JSON.parse(said === '' ? '{}' : said);
  return typeof found === 'object' && found !== null ? Object.keys(found).toSorted() : [];
}
