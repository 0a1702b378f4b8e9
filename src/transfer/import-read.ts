// transfer/import-read.ts: checks and reads a file that claims to be an exported task.
// Invariant: the file is hostile. Member names must be on a list, sizes must match the content, unpacked bytes are counted, and only
// fields of the schema are accepted.
import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync } from 'node:fs';
import type { Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { AgsError } from '../protocol/errors.ts';
import {
  dataMember,
  EXPORT_FORMATS,
  EXPORT_LIMITS,
  ExportManifest,
  isMemberName,
  MANIFEST,
  MEMBERS,
  type MemberName,
} from '../protocol/export.ts';
import { listArchive, readMember, type FoundMember } from '../lib/archive.ts';
import { errorCode } from '../lib/error-code.ts';
import { createLines } from '../lib/stream/lines.ts';
import { visible } from '../lib/sanitize.ts';

export interface ExportFile extends Disposable {
  readonly manifest: ExportManifest;
  has(name: MemberName): boolean;
  /** Passes a member on as a stream; throws afterwards unless it matches the manifest. */
  take(name: MemberName, consume: (content: Readable) => Promise<void>): Promise<void>;
  /** Unpacks a member piece by piece; at most `maxBytes`. */
  unpack(name: MemberName, maxBytes: number, onChunk: (chunk: Buffer) => void): Promise<void>;
  /** Reads the lines of a packed member; at most `maxBytes` in total. */
  lines(name: MemberName, maxBytes: number, onLine: (line: string) => void): Promise<void>;
}

export function refusedFile(why: string): AgsError {
  return new AgsError('import.refused', `The file cannot be imported: ${visible(why)}.`, {
    hint: 'Nothing was imported. Export the task again: ags export <task> <file>',
  });
}

export async function openExport(file: string): Promise<ExportFile> {
  const fd = open(file);
  const close = (): void => closeSync(fd);
  try {
    const members = listArchive(fd, (name) => name === MANIFEST || isMemberName(name));
    if ('problem' in members) throw refusedFile(`it is not an exported task, or not all of one: ${members.problem}`);
    const manifest = await readManifest(fd, members.get(MANIFEST));
    requireListed(manifest, members);
    return { manifest, ...readers(fd, members, manifest), [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
}

function open(file: string): number {
  try {
    // Without O_NONBLOCK, opening a named pipe would wait for a writer.
    const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
    if (fstatSync(fd).isFile()) return fd;
    closeSync(fd);
  } catch (error) {
    if (!['ENOENT', 'ENOTDIR', 'EACCES', 'ELOOP', 'ENXIO', 'ENAMETOOLONG', 'EPERM'].includes(errorCode(error) ?? ''))
      throw error;
    throw new AgsError('path.not-found', `${visible(file)} cannot be read.`, {
      hint: 'Name the file that was written by: ags export <task> <file>',
      cause: error,
    });
  }
  throw new AgsError('import.refused', `${visible(file)} is not a file.`);
}

async function readManifest(fd: number, member: FoundMember | undefined): Promise<ExportManifest> {
  if (member === undefined) throw refusedFile('it says nowhere what is in it');
  if (member.bytes > EXPORT_LIMITS.manifestBytes) throw refusedFile('what it says about itself is too long');
  const chunks: Buffer[] = [];
  for await (const chunk of readMember(fd, member)) chunks.push(chunk as Buffer);
  const value = parse(Buffer.concat(chunks).toString('utf8'));
  const format = (value as { format?: unknown } | null)?.format;
  if (typeof format === 'number' && !EXPORT_FORMATS.some((known) => known === format))
    throw new AgsError(
      'import.refused',
      `The file has format ${format}; this ags reads format ${EXPORT_FORMATS.join(' and ')}.`,
      {
        hint: 'Use the same version of ags on both machines: ags --version',
      },
    );
  const parsed = ExportManifest.safeParse(value);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw refusedFile(`what it says about itself is wrong at ${issue?.path.join('.') || 'its beginning'}`);
}

function requireListed(manifest: ExportManifest, members: ReadonlyMap<string, FoundMember>): void {
  const names = manifest.members.map(({ name }) => name);
  if (new Set(names).size !== names.length || names.length !== members.size - 1)
    throw refusedFile('its parts are not those that it lists');
  for (const { name, bytes } of manifest.members)
    if (members.get(name)?.bytes !== bytes) throw refusedFile(`${name} has not the size that it should have`);
  for (const name of [MEMBERS.events, MEMBERS.network]) if (!members.has(name)) throw refusedFile(`${name} is missing`);
  const listed = (manifest.services ?? []).map((one): string => dataMember(one.name));
  const data = names.filter((name) => name.startsWith('services/'));
  if (
    (manifest.services === undefined) !== (manifest.format === 1) ||
    listed.toSorted().join() !== data.toSorted().join()
  )
    throw refusedFile('the data of its services is not what it lists');
  // The schema allows each service the limit of all together, so the sum is checked here.
  const sum = (what: 'bytes' | 'entries'): number => (manifest.services ?? []).reduce((all, one) => all + one[what], 0);
  if (sum('bytes') > EXPORT_LIMITS.dataBytes || sum('entries') > EXPORT_LIMITS.dataEntries)
    throw refusedFile('the data of its services together is more than a task brings along');
  const { root, base, commit, objectFormat } = manifest.work;
  const length = objectFormat === 'sha256' ? 64 : 40;
  if ([root, base, commit].some((oid) => oid.length !== length)) throw refusedFile('its commits are of several kinds');
  if (members.has(MEMBERS.work) !== (commit !== root)) throw refusedFile('its work is missing');
}

function readers(
  fd: number,
  members: ReadonlyMap<string, FoundMember>,
  manifest: ExportManifest,
): Pick<ExportFile, 'has' | 'take' | 'unpack' | 'lines'> {
  const take: ExportFile['take'] = async (name, consume) => {
    const member = members.get(name);
    if (member === undefined) throw refusedFile(`${name} is missing`);
    const hash = createHash('sha256');
    const content = readMember(fd, member).on('data', (chunk: Buffer) => hash.update(chunk));
    // The consumer starts the stream.
    content.pause();
    await consume(content);
    if (hash.digest('hex') !== manifest.members.find((one) => one.name === name)?.sha256)
      throw refusedFile(`${name} is damaged`);
  };
  const unpack: ExportFile['unpack'] = (name, maxBytes, onChunk) =>
    take(name, async (content) => {
      let bytes = 0;
      const unzip = content.pipe(createGunzip());
      content.on('error', (error) => unzip.destroy(error));
      try {
        for await (const chunk of unzip) {
          bytes += (chunk as Buffer).length;
          if (bytes > maxBytes) throw refusedFile(`${name} is more than ${maxBytes} bytes when it is unpacked`);
          onChunk(chunk as Buffer);
        }
      } catch (error) {
        content.destroy();
        // zlib reports that its input is not packed, or not complete.
        if (String((error as { code?: unknown }).code).startsWith('Z_')) throw refusedFile(`${name} is damaged`);
        throw error;
      }
    });
  return {
    has: (name) => members.has(name),
    take,
    unpack,
    async lines(name, maxBytes, onLine) {
      const lines = createLines(EXPORT_LIMITS.lineBytes, onLine);
      await unpack(name, maxBytes, (chunk) => lines.push(chunk));
      lines.end();
    },
  };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
