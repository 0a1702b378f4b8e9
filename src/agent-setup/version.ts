// agent-setup/version.ts: finds the version of a program: from its package, or by running it in a sandbox without network.
// ags runs no agent's program outside of a sandbox, not even the user's own.
import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Agent } from '../agents/agent.ts';
import { remember } from '../lib/remember.ts';
import { shortHash } from '../lib/short-hash.ts';
import { runOneOff, type OneOffRequest, type ProgramMount } from '../run/one-off-sandbox.ts';
import type { AgentProgram, HostProgram } from './agent-program.ts';
import type { HostContext } from '../run/host-context.ts';

/** Cached until the file changes. null: unknown. */
export async function askVersion(context: HostContext, program: HostProgram, ask: boolean): Promise<string | null> {
  const packaged = packagedVersion(program.real);
  if (packaged !== null) return packaged;
  const { mtimeMs, size, ino } = statSync(program.real);
  const file = join(context.cacheDir, `agent-version-${shortHash(program.path)}.json`);
  const key = [program.real, mtimeMs, size, ino].join(' ');
  const known = recall(file);
  if (known?.key === key) return known.version;
  if (!ask) return null;
  const { version } = await runForVersion(context, program).catch(() => ({ version: null }));
  if (version !== null) remember(file, JSON.stringify({ key, version }));
  return version;
}

export interface VersionRun {
  /** null: the program failed, or printed no version. */
  readonly version: string | null;
  readonly exitCode: number;
  /** Hostile text. */
  readonly said: string;
}

export function runForVersion(
  context: HostContext,
  program: { readonly argv: readonly string[]; readonly mounts: readonly ProgramMount[] },
): Promise<VersionRun> {
  const request: OneOffRequest = {
    name: 'agent-version',
    command: [...program.argv, '--version'],
    network: null,
    mounts: program.mounts,
    env: { CI: '1' },
    limits: { wallSeconds: 60, diskBytes: 256 * 1024 ** 2 },
    notice: () => undefined,
  };
  return runOneOff(context, context.stateDir, request, ({ exitCode, said }) => ({
    version: exitCode === 0 ? versionIn(said) : null,
    exitCode,
    said,
  }));
}

/** The first word that looks like a version: "2.1.325 (Claude Code)", "codex-cli 0.166.0". */
function versionIn(text: string): string | null {
  return (
    text
      .split(/[\s()]+/)
      .map((word) => word.replace(/^v/, ''))
      .find((word) => VERSION.test(word)) ?? null
  );
}

/** A notice, once for each version, that this version was not tested with ags. null: nothing to report. */
export function versionNotice(context: HostContext, agent: Agent, program: AgentProgram): string | null {
  const tested = agent.install?.version;
  if (
    program.source !== 'host' ||
    program.version === null ||
    tested === undefined ||
    program.version.split('-')[0] === tested
  )
    return null;
  const file = join(context.cacheDir, `agent-said-${agent.name}.json`);
  const key = `${program.version} ${tested}`;
  if (recall(file)?.key === key) return null;
  remember(file, JSON.stringify({ key, version: program.version }));
  return `Your ${agent.title} is version ${program.version}; ags was tested with ${tested}. Install that version for ags: ags agents install ${agent.name}`;
}

function recall(file: string): { key: string; version: string } | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as { key: string; version: string };
  } catch {
    return null;
  }
}

/** The version in its package.json; null: it is not in a package. */
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
/** Matches the directory of the npm package that a file belongs to. */
export const PACKAGE = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/;
