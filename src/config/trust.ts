// config/trust.ts: the user's approvals of project files.
// Invariant: an approval covers one project path, one exact content and exactly the displayed asks; for a hook file, its path
// and its whole digest. Anything else needs a new approval.
import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../protocol/errors.ts';
import { replaceFile } from '../lib/files.ts';
import { hookFileAsk, type HookFileAsk } from './hook-asks.ts';

export interface Approval {
  readonly sha256: string;
  readonly asks: readonly string[];
  /** Digests of hook files, by path in the project. */
  readonly hooks?: Readonly<Record<string, string>>;
  readonly at: string;
}

interface TrustFile {
  readonly version: 1;
  readonly projects: Readonly<Record<string, Approval>>;
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

export function requireTrust(input: {
  stateDir: string;
  projectDir: string;
  bytes: Uint8Array;
  asks: readonly string[];
}): void {
  if (isTrusted(input)) return;
  throw new AgsError(
    'config.untrusted',
    `ags.yaml asks for rights that you have not approved:\n${input.asks.map((ask) => `  ${ask}`).join('\n')}`,
    {
      hint: 'To approve them for this project: ags trust',
      details: { asks: [...input.asks] },
    },
  );
}

export function isTrusted(input: {
  stateDir: string;
  projectDir: string;
  bytes: Uint8Array;
  asks: readonly string[];
}): boolean {
  if (input.asks.length === 0) return true;
  const approval = approvalOf(input.stateDir, input.projectDir);
  return approval?.sha256 === sha256(input.bytes) && input.asks.every((ask) => approval.asks.includes(ask));
}

/** Only agents run hook files, so other commands do not need this approval. */
export function requireHookTrust(input: { stateDir: string; projectDir: string; hooks: readonly HookFileAsk[] }): void {
  const asks = untrustedHooks(input).map(hookFileAsk);
  if (asks.length === 0) return;
  throw new AgsError(
    'config.untrusted',
    `This project has hooks that you have not approved:\n${asks.map((ask) => `  ${ask}`).join('\n')}`,
    { hint: 'Review them. To let them run on this machine: ags trust', details: { asks } },
  );
}

export function untrustedHooks(input: {
  stateDir: string;
  projectDir: string;
  hooks: readonly HookFileAsk[];
}): HookFileAsk[] {
  if (input.hooks.length === 0) return [];
  const approved = approvalOf(input.stateDir, input.projectDir)?.hooks ?? {};
  return input.hooks.filter(({ path, sha256: digest }) => !Object.hasOwn(approved, path) || approved[path] !== digest);
}

export function approve(input: {
  stateDir: string;
  projectDir: string;
  bytes: Uint8Array;
  asks: readonly string[];
  /** Absent: earlier approvals of hook files stay. */
  hooks?: readonly HookFileAsk[];
  now: Date;
}): void {
  const { projects } = readTrust(input.stateDir);
  const hooks =
    input.hooks === undefined
      ? (approvalOf(input.stateDir, input.projectDir)?.hooks ?? {})
      : Object.fromEntries(input.hooks.map(({ path, sha256: digest }) => [path, digest]));
  const approval: Approval = {
    sha256: sha256(input.bytes),
    asks: [...input.asks],
    ...(Object.keys(hooks).length > 0 && { hooks }),
    at: input.now.toISOString(),
  };
  save(input.stateDir, { ...projects, [realpathSync(input.projectDir)]: approval });
}

/** False if there was no approval to revoke. */
export function revoke(input: { stateDir: string; projectDir: string }): boolean {
  const { [realpathSync(input.projectDir)]: approval, ...others } = readTrust(input.stateDir).projects;
  if (approval === undefined) return false;
  save(input.stateDir, others);
  return true;
}

export function approvalOf(stateDir: string, projectDir: string): Approval | undefined {
  const { projects } = readTrust(stateDir);
  const path = realpathSync(projectDir);
  return Object.hasOwn(projects, path) ? projects[path] : undefined;
}

function save(stateDir: string, projects: TrustFile['projects']): void {
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  replaceFile(trustPath(stateDir), `${JSON.stringify({ version: 1, projects } satisfies TrustFile, null, 2)}\n`, {
    durable: true,
  });
}

function readTrust(stateDir: string): TrustFile {
  const path = trustPath(stateDir);
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return { version: 1, projects: {} };
    throw damaged(path, error);
  }
  try {
    const file: unknown = JSON.parse(text);
    if (isTrustFile(file)) return file;
  } catch (error) {
    throw damaged(path, error);
  }
  throw damaged(path, undefined);
}

function isTrustFile(value: unknown): value is TrustFile {
  const file = value as Partial<TrustFile> | null;
  if (file?.version !== 1 || typeof file.projects !== 'object' || file.projects === null) return false;
  return Object.values(file.projects).every(
    (entry) =>
      typeof entry?.sha256 === 'string' && Array.isArray(entry.asks) && typeof (entry.hooks ?? {}) === 'object',
  );
}

function damaged(path: string, cause: unknown): AgsError {
  return new AgsError('state.damaged', `${path} cannot be read, so ags knows no approvals.`, {
    hint: `Remove it and approve your projects again: rm ${path}`,
    cause,
  });
}

function trustPath(stateDir: string): string {
  return join(stateDir, 'trust.json');
}
