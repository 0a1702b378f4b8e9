// config/file/read.ts: reads the bytes of the configuration files.
// Invariant: a project's ags.yaml is read only if it is a regular file inside the project, whichever links lead to it.
import { closeSync, constants, existsSync, fstatSync, openSync, readlinkSync, readSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { AgsError } from '../../protocol/errors.ts';
import { isWithin } from '../../lib/files.ts';

export interface LayerFile {
  readonly kind: 'user' | 'project';
  readonly path: string;
  /** Its name in messages and origins. */
  readonly label: string;
  readonly bytes: Buffer;
}

const MAX_BYTES = 256 * 1024;

export function readLayerFiles(input: { userConfigFile: string; projectDir: string }): LayerFile[] {
  const path = join(input.projectDir, 'ags.yaml');
  const user = readLayerFile({ kind: 'user', path: input.userConfigFile, label: input.userConfigFile });
  const project = readLayerFile({ kind: 'project', path, label: 'ags.yaml', inside: input.projectDir });
  return [user, project].filter((file) => file !== undefined);
}

export function readLayerFile(file: {
  kind: LayerFile['kind'];
  path: string;
  label: string;
  inside?: string;
}): LayerFile | undefined {
  const fd = open(file.path, file.label);
  if (fd === undefined) {
    // An ignored file would be worse than an error: the user believes that its rules are in force.
    const other = file.path.replace(/\.yaml$/, '.yml');
    if (other === file.path || !existsSync(other)) return undefined;
    throw unreadable(
      file.label.replace(/\.yaml$/, '.yml'),
      'is not read: its name must end in .yaml',
      `Rename it: mv ${other} ${file.path}`,
    );
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw unreadable(file.label, 'is not a regular file');
    // The kernel names the open file's real path, so nothing can be exchanged between check and open.
    if (file.inside !== undefined && !isWithin(readlinkSync(`/proc/self/fd/${fd}`), realpathSync(file.inside))) {
      throw unreadable(file.label, 'is a link that leads out of the project');
    }
    const bytes = Buffer.alloc(MAX_BYTES + 1);
    let length = 0;
    for (let n = -1; n !== 0 && length < bytes.length; length += n)
      n = readSync(fd, bytes, length, bytes.length - length, null);
    if (length > MAX_BYTES) throw unreadable(file.label, 'has more than 256 kB');
    return { kind: file.kind, path: file.path, label: file.label, bytes: bytes.subarray(0, length) };
  } finally {
    closeSync(fd);
  }
}

function open(path: string, label: string): number | undefined {
  try {
    // Without O_NONBLOCK, opening a fifo of that name would block forever.
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOTDIR' || (code === 'ENOENT' && !isDanglingLink(path))) return undefined;
    if (code === 'ENOENT') throw unreadable(label, 'is a broken symbolic link');
    throw unreadable(
      label,
      code === 'EACCES' ? 'is not readable by you' : `cannot be opened (${code})`,
      undefined,
      error,
    );
  }
}

function isDanglingLink(path: string): boolean {
  try {
    readlinkSync(path);
    return true;
  } catch {
    return false;
  }
}

function unreadable(label: string, problem: string, hint?: string, cause?: unknown): AgsError {
  return new AgsError('config.invalid', `${label} ${problem}.`, {
    hint,
    cause,
    details: { problems: [`${label} ${problem}`] },
  });
}
