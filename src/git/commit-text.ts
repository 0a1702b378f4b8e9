// git/commit-text.ts: writes and reads commits as text. ags writes every byte of its commits itself, so no setting or variable
// affects them; it treats an agent's commits as hostile text.
import { isUtf8 } from 'node:buffer';
import { stagingGit } from './host-git.ts';

export interface Person {
  readonly name: string;
  readonly email: string;
}

export interface CommitParts {
  readonly tree: string;
  readonly parents: readonly string[];
  /** In git's form: name <email> seconds zone. */
  readonly author: string;
  readonly committer: string;
  readonly message: string;
}

/** Stores the commit and returns its id. */
export async function writeCommit(staging: string, parts: CommitParts): Promise<string> {
  const text = [
    `tree ${parts.tree}`,
    ...parts.parents.map((parent) => `parent ${parent}`),
    `author ${parts.author}`,
    `committer ${parts.committer}`,
    '',
    parts.message.endsWith('\n') ? parts.message : `${parts.message}\n`,
  ].join('\n');
  const stored = await stagingGit(staging, ['hash-object', '-t', 'commit', '-w', '--stdin'], {
    input: Buffer.from(text),
  });
  if (stored.exitCode !== 0) throw new Error(`git hash-object failed in ${staging}: ${stored.stderr.trim()}`);
  return stored.stdout.toString('latin1').trim();
}

/** Returns null if it has other headers (a signature, an encoding), is not text, or holds control characters. */
export function readCommit(bytes: Buffer): CommitParts | null {
  if (!isUtf8(bytes) || bytes.length > 256 * 1024) return null;
  const text = bytes.toString('utf8');
  const end = text.indexOf('\n\n');
  const found = HEADERS.exec(`${end < 0 ? text.replace(/\n$/, '') : text.slice(0, end)}\n`);
  if (found?.[1] === undefined || found[3] === undefined || found[4] === undefined) return null;
  // eslint-disable-next-line no-control-regex
  if (/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/.test(text)) return null;
  return {
    tree: found[1],
    parents: (found[2] ?? '')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => line.slice('parent '.length)),
    author: found[3],
    committer: found[4],
    message: end < 0 ? '' : text.slice(end + 2),
  };
}

const WHO = String.raw`[^<>\n]*<[^<>\n]*> \d{1,12} [+-]\d{4}`;
const HEADERS = new RegExp(
  String.raw`^tree ([0-9a-f]{40,64})\n((?:parent [0-9a-f]{40,64}\n)*)author (${WHO})\ncommitter (${WHO})\n$`,
);

export function signature(person: Person, at: Date): string {
  const clean = (text: string): string => oneLine(text.replaceAll(/[<>]/g, '')) || 'unknown';
  const minutes = -at.getTimezoneOffset();
  const zone = `${minutes < 0 ? '-' : '+'}${String(Math.floor(Math.abs(minutes) / 60)).padStart(2, '0')}${String(Math.abs(minutes) % 60).padStart(2, '0')}`;
  return `${clean(person.name)} <${clean(person.email).replaceAll(' ', '')}> ${Math.floor(at.getTime() / 1000)} ${zone}`;
}

/** Removes line ends and invisible characters. */
export function oneLine(text: string, longest = 1000): string {
  const line = text
    .replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replaceAll(/[\p{Cf}\p{Cs}]/gu, '')
    .replaceAll(/ {2,}/g, ' ')
    .trim();
  const letters = [...line];
  return letters.length > longest ? `${letters.slice(0, longest - 1).join('')}…` : line;
}

/** Appends trailers to a message, one line each: "Ags-Task: fix-1a2b". */
export function withTrailers(message: string, trailers: readonly (readonly [string, string])[]): string {
  const kept = message
    .replaceAll(/[^\P{Cc}\n\t]|[\p{Cs}]/gu, '')
    .split('\n')
    // Only ags itself may write these trailers.
    .filter((line) => !/^ags-(goal|task|run|agent):/i.test(line))
    .join('\n')
    .trim();
  const lines = trailers.map(([key, value]) => `${key}: ${oneLine(value)}`);
  const last = kept.slice(kept.lastIndexOf('\n\n') + 2).split('\n');
  // The agent's message may end in trailers too; git wants all of them in one block.
  const together = kept.includes('\n\n') && last.every((line) => /^[A-Za-z][A-Za-z-]*: \S/.test(line));
  return `${kept === '' ? 'Work of an agent' : kept}${together ? '\n' : '\n\n'}${lines.join('\n')}\n`;
}
