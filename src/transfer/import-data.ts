// transfer/import-data.ts: writes the data of services from an export file, for the services of the imported task.
// Invariant: it does not interpret the data. It writes one name at a time by descriptor, into a directory that is not in use yet. It makes
// and follows no link, and only the owner may read the result.
import { closeSync, mkdirSync, realpathSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { dataMember, type CarriedService } from '../protocol/export.ts';
import { openDirectory, type Directory, type Owner } from '../lib/descend.ts';
import { errorCode } from '../lib/error-code.ts';
import { replaceFile } from '../lib/files.ts';
import { readTree, TreeProblem, type TreeEntry } from '../lib/tree-archive.ts';
import type { TaskPaths } from '../store/layout.ts';
import { servicePlace, writeServices } from '../store/service-files.ts';
import { refusedFile, type ExportFile } from './import-read.ts';

export async function takeData(file: ExportFile, making: TaskPaths, owner: Owner): Promise<void> {
  const services = file.manifest.services ?? [];
  for (const service of services) await takeOne(file, making, service, owner);
  if (services.length > 0) writeServices(making, services.map(firstStatus));
}

async function takeOne(file: ExportFile, making: TaskPaths, service: CarriedService, owner: Owner): Promise<void> {
  const { name, bytes, entries } = service;
  const place = servicePlace(making, name);
  mkdirSync(place.runDir, { recursive: true, mode: 0o755 });
  {
    using writer = writeTree(place.copy, owner);
    const reader = readTree({ bytes, entries }, writer);
    try {
      await file.unpack(dataMember(name), bytes + 1024 * (entries + 24), (chunk) => reader.push(chunk));
      const found = reader.end();
      if (found.bytes !== bytes || found.entries !== entries) throw new TreeProblem('it is not all there');
    } catch (error) {
      // The archive has a name twice, or a file in place of a directory.
      if (error instanceof TreeProblem || ['EEXIST', 'ENOENT', 'ENOTDIR', 'EINVAL'].includes(errorCode(error) ?? ''))
        throw refusedFile(`the data of ${name} is not what a service leaves: ${(error as Error).message}`);
      throw error;
    }
  }
  // No layer lies below the imported data.
  replaceFile(join(place.root, 'layer'), '');
}

/** Writes the entries of a tree in archive order: a directory comes before its content. */
function writeTree(
  path: string,
  owner: Owner,
): Disposable & { entry(entry: TreeEntry): void; content(bytes: Buffer): void } {
  /** The open directories from the root to that of the last entry. */
  const open: { readonly name: string; readonly directory: Directory }[] = [];
  let file: number | null = null;
  const closeFile = (): void => {
    if (file !== null) closeSync(file);
    file = null;
  };
  /** The directory of an entry. */
  const parentOf = (names: readonly string[]): Directory => {
    let shared = 1;
    while (shared < open.length && open[shared]?.name === names[shared - 1]) shared++;
    while (open.length > shared) open.pop()?.directory[Symbol.dispose]();
    for (const name of names.slice(shared - 1)) {
      const directory = (open.at(-1) as (typeof open)[number]).directory.child(bytesOf(name));
      open.push({ name, directory });
    }
    return (open.at(-1) as (typeof open)[number]).directory;
  };
  return {
    entry({ path: names, kind }) {
      closeFile();
      if (names.length === 0) {
        mkdirSync(path, { mode: 0o700 });
        const directory = openDirectory(join(realpathSync(dirname(path)), basename(path)));
        open.push({ name: '', directory });
        return directory.chown(owner);
      }
      const parent = parentOf(names.slice(0, -1));
      const name = bytesOf(names.at(-1) ?? '');
      if (kind !== 'directory')
        return void (file = parent.writeOpen(name, NOTHING, kind === 'program' ? 0o700 : 0o600, { chown: owner }));
      using made = parent.mkdirChild(name, 0o700);
      made.chown(owner);
    },
    content(bytes) {
      // Not writeSync, which may silently write only a part when the disk is nearly full.
      if (file !== null) writeFileSync(file, bytes);
    },
    [Symbol.dispose]() {
      closeFile();
      for (const { directory } of open) directory[Symbol.dispose]();
    },
  };
}

const NOTHING = Buffer.alloc(0);

function bytesOf(name: string): Buffer {
  return Buffer.from(name, 'latin1');
}

/** The address is unknown until the service starts here. */
function firstStatus({ name, kind }: CarriedService): Parameters<typeof writeServices>[1][number] {
  return {
    name,
    kind,
    state: 'stopped',
    address: '',
    ports: [],
    url: '',
    client: null,
    layer: null,
    why: null,
    lines: [],
  };
}
