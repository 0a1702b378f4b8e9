// agent-setup/version.ts: which version a program is. Its package says it, or it is asked itself, in a sandbox without network:
// it is the user's own program, and still not ours to run outside.
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Agent } from '../agents/agent.ts';
import { remember } from '../lib/remember.ts';
import { shortHash } from '../lib/short-hash.ts';
import { runApart, type ApartRequest, type ProgramMount } from '../run/one-off-sandbox.ts';
import type { AgentProgram, HostProgram } from './programs.ts';
import type { World } from '../run/host-context.ts';

/** Remembered for as long as the file stays as it is. null: it does not say. */
export async function askVersion(world: World, program: HostProgram, ask: boolean): Promise<string | null> {
  const packaged = packagedVersion(program.real);
  if (packaged !== null) return packaged;
  const { mtimeMs, size, ino } = statSync(program.real);
  const file = join(world.cacheDir, `agent-version-${shortHash(program.path)}.json`);
  const key = [program.real, mtimeMs, size, ino].join(' ');
  const known = recall(file);
  if (known?.key === key) return known.version;
  if (!ask) return null;
  const { version } = await runForVersion(world, program).catch(() => ({ version: null }));
  if (version !== null) remember(file, JSON.stringify({ key, version }));
  return version;
}

export interface VersionRun {
  /** null: it did not run, or printed none. */
  readonly version: string | null;
  readonly exitCode: number;
  /** Hostile text. */
  readonly said: string;
}

export function runForVersion(
  world: World,
  program: { readonly argv: readonly string[]; readonly mounts: readonly ProgramMount[] },
): Promise<VersionRun> {
  const request: ApartRequest = {
    name: 'agent-version',
    command: [...program.argv, '--version'],
    network: null,
    mounts: program.mounts,
    env: { CI: '1' },
    limits: { wallSeconds: 60, diskBytes: 256 * 1024 ** 2 },
    notice: () => undefined,
  };
  return runApart(world, world.stateDir, request, ({ exitCode, said }) => ({
    version: exitCode === 0 ? versionIn(said) : null,
    exitCode,
    said,
  }));
}

/** The first word that looks like one: "2.1.325 (Claude Code)", "codex-cli 0.166.0". */
function versionIn(text: string): string | null {
  return (
    text

      .split(/[\s()]+/)
      .map((word) => word.replace(/^v/, ''))
      .find((word) => VERSION.test(word)) ?? null
  );
}

/** A sentence for the user, once for each version: another one than was tried with ags. null: nothing to say. */
export function versionNotice(world: World, agent: Agent, program: AgentProgram): string | null {
  const tried = agent.install?.version;
  if (
    program.source !== 'host' ||
    program.version === null ||
    tried === undefined ||
    program.version.split('-')[0] === tried
  )
    return null;
  const file = join(world.cacheDir, `agent-said-${agent.name}.json`);
  const key = `${program.version} ${tried}`;
  if (recall(file)?.key === key) return null;
  remember(file, JSON.stringify({ key, version: program.version }));
  return `Your ${agent.title} is version ${program.version}; ags was tried with ${tried}. To have that one too: ags agents install ${agent.name}`;
}

function recall(file: string): { key: string; version: string } | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { key: string; version: string };
  } catch {
    return null;
  }
}

/** What its own package says; null: it is none. */
function packagedVersion(real: string): string | null {
  const directory = PACKAGE.exec(real)?.[0] ?? dirname(real);
  try {
    const { version } = JSON.parse(readFileSync(join(directory, 'package.json'), 'utf8')) as { version?: unknown };
    return typeof version === 'string' && VERSION.test(version) ? version : null;
  } catch {
    return null;
  }
}

const VERSION = /^\d+\.\d+\.\d+(?:[-+.][\w.+-]{1,60})?$/;
/** The package that a file belongs to, where npm or its kin have put it. */
export const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
