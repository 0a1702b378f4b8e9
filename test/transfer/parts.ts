// test/transfer/parts.ts: unpacks an exported task and packs it again with changes, as an attacker would.
import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chownSync, closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ExportManifest } from '../../src/protocol/export.ts';
import { createArchive } from '../../src/lib/archive.ts';
import type { Machine } from '../harness.ts';

export interface Parts {
  manifest: ExportManifest;
  members: Record<string, Buffer>;
}

/** The directory for files and their owner. */
type Home = Pick<Machine, 'home' | 'uid'>;

/** Uses the system's tar, which must be able to read the file. */
export function readParts(file: string): Parts {
  const read = (name: string): Buffer => execFileSync('tar', ['-xOf', file, name], { maxBuffer: 2 ** 30 });
  const names = execFileSync('tar', ['-tf', file], { encoding: 'utf8' }).trim().split('\n');
  const members = Object.fromEntries(
    names.filter((name) => name !== 'ags-export.json').map((name) => [name, read(name)]),
  );
  return { manifest: JSON.parse(read('ags-export.json').toString('utf8')) as ExportManifest, members };
}

/** Writes correct sizes and hashes unless `lie` changes the manifest. */
export async function writeParts(
  machine: Home,
  name: string,
  { manifest, members }: Parts,
  lie: (manifest: Record<string, unknown>) => unknown = (true_) => true_,
): Promise<string> {
  const file = join(machine.home, name);
  const fd = openSync(file, 'w');
  try {
    const archive = createArchive(fd);
    for (const [member, content] of Object.entries(members)) await archive.add(member, [content]);
    const listed = Object.entries(members).map(([member, content]) => ({
      name: member,
      bytes: content.length,
      sha256: createHash('sha256').update(content).digest('hex'),
    }));
    const told = lie({ ...structuredClone(manifest), members: listed });
    await archive.add('ags-export.json', [Buffer.from(JSON.stringify(told))]);
    archive.end();
  } finally {
    closeSync(fd);
  }
  return give(machine, file);
}

export function writeBytes(machine: Home, name: string, bytes: Buffer): string {
  const file = join(machine.home, name);
  writeFileSync(file, bytes);
  return give(machine, file);
}

function give(machine: Home, file: string): string {
  if (process.getuid?.() === 0) chownSync(file, machine.uid, machine.uid);
  return file;
}

export interface Outcome {
  readonly file: string;
  /** The task's name. */
  readonly name?: string;
  readonly code?: string;
  readonly message?: string;
  readonly stack?: string;
}

/** Imports files in sequence, in one process of the machine's user. */
export function importAll(machine: Machine, files: readonly string[], into?: string): Promise<Outcome[]> {
  const identity = process.getuid?.() === 0 ? { uid: machine.uid, gid: machine.uid } : {};
  return new Promise((resolve, reject) => {
    const child = execFile(
      process.execPath,
      [fileURLToPath(new URL('import-driver.mjs', import.meta.url))],
      { cwd: machine.project, env: machine.env, ...identity, maxBuffer: 2 ** 26, timeout: 100_000 },
      (error, stdout, stderr) => {
        try {
          resolve(JSON.parse(stdout) as Outcome[]);
        } catch {
          reject(new Error(`${error?.message ?? ''}\n${stdout}${stderr}`));
        }
      },
    );
    child.stdin?.end(JSON.stringify({ files, into }));
  });
}

/** All unpacked objects of a pack as one text. */
export function packText(pack: Buffer): string {
  const directory = mkdtempSync('/tmp/ags-pack-');
  const git = (args: string[], input?: Buffer): Buffer =>
    execFileSync('git', ['-C', directory, ...args], { input, maxBuffer: 2 ** 30, stdio: ['pipe', 'pipe', 'ignore'] });
  try {
    git(['init', '-q', '--bare']);
    git(['unpack-objects', '-q'], pack);
    return git(['cat-file', '--batch-all-objects', '--batch']).toString('latin1');
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
