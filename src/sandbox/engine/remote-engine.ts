// sandbox/engine/remote-engine.ts: finds the address of a remote engine, and checks that it can run our sandboxes.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { callEngine, type Engine } from './engine.ts';

type Env = Readonly<Record<string, string | undefined>>;

/** The engine address that Docker's own client would use, or the problem. */
export function dockerAddress(env: Env): string | { readonly problem: string } {
  const { DOCKER_HOST: host, DOCKER_CONTEXT: named } = env;
  if (host !== undefined && host !== '') return host;
  const directory = env['DOCKER_CONFIG'] ?? join(env['HOME'] ?? '/', '.docker');
  const context = named !== undefined && named !== '' ? named : currentContext(join(directory, 'config.json'));
  if (context === null || context === 'default') return LOCAL;
  const file = join(directory, 'contexts/meta', createHash('sha256').update(context).digest('hex'), 'meta.json');
  const found = readJson(file) as { Endpoints?: { docker?: { Host?: unknown } } } | null;
  const address = found?.Endpoints?.docker?.Host;
  return typeof address === 'string' ? address : { problem: `Docker has no context "${context}".` };
}

export const LOCAL = 'unix:///var/run/docker.sock';

function currentContext(file: string): string | null {
  const { currentContext: name } = (readJson(file) ?? {}) as { currentContext?: unknown };
  return typeof name === 'string' && name !== '' ? name : null;
}

function readJson(file: string): unknown {
  try {
    return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : null;
  } catch {
    // Docker itself reports what is wrong with the file.
    return null;
  }
}

const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'x64',
  amd64: 'x64',
  aarch64: 'arm64',
  arm64: 'arm64',
};

/** Our programs there are copies of this machine's, so the architecture must match; and only the engine can enforce limits there. */
export async function checkRemoteEngine(engine: Engine, arch: 'x64' | 'arm64'): Promise<void> {
  const said = await callEngine(engine, [
    'info',
    '--format',
    '{{.OSType}} {{.Architecture}} {{.MemoryLimit}} {{.PidsLimit}}',
  ]);
  const [system = '', architecture = '', memory = '', processes = ''] = said.split(' ');
  if (system !== 'linux' || ARCHITECTURES[architecture] !== arch)
    throw refuse(`The engine at ${engine.far} is ${system} on ${architecture}; this machine is linux on ${arch}.`);
  if (memory !== 'true' || processes !== 'true')
    throw refuse(`The engine at ${engine.far} cannot limit memory and processes.`);
}

function refuse(message: string): AgsError {
  return new AgsError('backend.unavailable', message, { hint: 'Use another engine, or: --backend native' });
}
