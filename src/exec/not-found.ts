// exec/not-found.ts: why a sandbox has no program of the name that the user typed.
// Invariant: says nothing if it may be there: a program may exit with 127 for reasons of its own.
import { closeSync, openSync, readSync, realpathSync, statSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { agentNamed } from '../agents/agents.ts';
import { visiblePlaces } from '../agent-setup/programs.ts';
import { isWithin } from '../lib/files.ts';
import { visible } from '../lib/sanitize.ts';
import type { Mount, SandboxSpec } from '../protocol/spec.ts';
import { isVisible } from '../sandbox/spec/plan-sandbox.ts';
import type { RunPlan } from '../run/run-plan.ts';
import type { HostContext } from '../run/host-context.ts';

/** Sentences; null: it is there, or nothing is known. */
export function whyNotFound(
  context: HostContext,
  plan: RunPlan,
  spec: SandboxSpec,
  [word = '']: readonly string[],
): string | null {
  if (plan.image !== null && agentNamed(word) === undefined) return null;
  const path = (spec.env['PATH'] ?? '').split(':').filter((dir) => isAbsolute(dir));
  const inside = word.includes('/') ? [resolve(plan.cwd, word)] : path.map((dir) => join(dir, word));
  const found = inside.find((candidate) => isThere(plan, spec.mounts, candidate));
  if (found !== undefined) return withoutInterpreter(context, plan, spec.mounts, found);
  const reason = reasonFor(context, plan, word, inside);
  return reason === null ? null : `${visible(word)} was not found in the sandbox: ${reason}`;
}

/** The same of a sandbox that runs already, of which only the name of the program is known. */
export function whyNotFoundBeside({ env }: HostContext, task: string, [word = '']: readonly string[]): string | null {
  if (word.includes('/') || agentNamed(word) !== undefined) return null;
  if ((env['PATH'] ?? '').split(':').some((dir) => isAbsolute(dir) && isProgram(join(dir, word)))) return null;
  return `${visible(word)} was not found in the sandbox of ${task}: ${NOWHERE}`;
}

const NOWHERE = 'it is not installed on this machine, or not in your PATH.';

/** A script whose first line names a program that only the host has. */
function withoutInterpreter(
  context: HostContext,
  plan: RunPlan,
  mounts: readonly Mount[],
  script: string,
): string | null {
  const interpreter = interpreterOf(script);
  if (interpreter === null || isThere(plan, mounts, interpreter)) return null;
  const reason = isProgram(interpreter)
    ? `${whereIs(context, interpreter)}. Show it: --mount ${quoted(directoryToShow(plan, interpreter))}`
    : 'there is no such program on this machine.';
  return `${visible(script)} needs ${visible(interpreter)}, which was not found in the sandbox: ${reason}`;
}

function interpreterOf(script: string): string | null {
  if (!isProgram(script)) return null;
  const file = openSync(script, 'r');
  try {
    const start = Buffer.alloc(256);
    const line = start.toString('latin1', 0, readSync(file, start)).split('\n')[0] ?? '';
    return /^#![ \t]*(\/[^ \t]+)/.exec(line)?.[1] ?? null;
  } finally {
    closeSync(file);
  }
}

function reasonFor(context: HostContext, plan: RunPlan, word: string, inside: readonly string[]): string | null {
  const agent = agentNamed(word);
  if (agent !== undefined && agent.install !== null)
    return `${agent.title} is not installed. Install it for ags: ags agents install ${agent.name}`;
  if (/\s/.test(word)) return `a command is one argument for each word. Use a shell: ags exec -- sh -c ${quoted(word)}`;
  if (OF_SHELLS.includes(word))
    return `it is part of a shell, and no program. Use a shell: ags exec -- sh -c "${word} ..."`;
  const usual = (context.env['PATH'] ?? '').split(':').filter((dir) => isAbsolute(dir));
  const there = (word.includes('/') ? inside : usual.map((dir) => join(dir, word))).find(isProgram);
  if (there === undefined) return word.includes('/') ? 'there is no such program on this machine.' : NOWHERE;
  const hidden = hiddenAs(plan, there);
  if (hidden !== null) return `the project hides it. Show it: --reveal ${quoted(hidden)}`;
  return `${whereIs(context, there)}. Show it: --mount ${quoted(directoryToShow(plan, there))}`;
}

const OF_SHELLS = ['.', 'alias', 'cd', 'eval', 'exec', 'export', 'set', 'source', 'type', 'ulimit', 'unset'];

/** Its directory, or that of the file to which its link leads. */
function directoryToShow(plan: RunPlan, path: string): string {
  const places = visiblePlaces(plan);
  return isVisible(dirname(path), places) ? dirname(realpathSync(path)) : dirname(path);
}

function whereIs({ home }: HostContext, path: string): string {
  const real = realpathSync(path);
  const shown = real === path ? visible(path) : `${visible(path)}, a link to ${visible(real)}`;
  return isWithin(real, home) || isWithin(path, home)
    ? `it is in your home, which is hidden (${shown})`
    : `sandboxes do not show ${shown}`;
}

/** The hidden path of the project that holds it, relative to the project. */
function hiddenAs({ project, hidden }: RunPlan, path: string): string | null {
  return hidden.paths.find((one) => isWithin(path, join(project.root, one))) ?? null;
}

/** On the host, a path inside is what the last mount above it shows. */
function isThere(plan: RunPlan, mounts: readonly Mount[], path: string): boolean {
  const mount = mounts.findLast(({ to }) => isWithin(path, to));
  switch (mount?.kind) {
    case undefined:
    case 'dir':
      return false;
    case 'bind': {
      const from = join(mount.from, relative(mount.to, path));
      return isProgram(from) && (mount.from !== String(mount.to) || isShown(mounts, realpathSync(from)));
    }
    case 'workspace':
      return hiddenAs(plan, path) === null && isProgram(path) && isShown(mounts, realpathSync(path));
    case 'symlink':
      return isProgram(path) && isShown(mounts, realpathSync(path));
    // Only the sandbox knows what is there.
    case 'tmpfs':
    case 'file':
    case 'proc':
    case 'dev':
      return true;
  }
}

function isShown(mounts: readonly Mount[], path: string): boolean {
  return mounts.some(({ to, kind }) => kind !== 'dir' && kind !== 'symlink' && isWithin(path, to));
}

function isProgram(path: string): boolean {
  try {
    const stat = statSync(path);
    return stat.isFile() && (stat.mode & 0o111) !== 0;
  } catch {
    return false;
  }
}

function quoted(word: string): string {
  if (/^[\w./:=@%+,~-]+$/.test(word)) return word;
  return `'${visible(word).replaceAll("'", String.raw`'\''`)}'`;
}
