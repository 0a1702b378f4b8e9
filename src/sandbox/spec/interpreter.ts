// sandbox/spec/interpreter.ts: a copy of this machine's Perl for sandboxes over an image. Our programs inside are written in Perl, and an
// image may have none, or another version. The copy holds the program, its loader and libraries, and the few modules in use.
// Invariant: the copy is started by its own loader with its own libraries, whatever libraries the image has.
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { errorCode } from '../../lib/error-code.ts';
import { run } from '../../lib/process/process.ts';
import { AgsError } from '../../protocol/errors.ts';
import type { SandboxRoot } from '../../protocol/spec.ts';

/** Its path inside. No image has files below /sys. */
export const INTERPRETER = '/sys/perl';

/** An empty file in that directory. */
export const EMPTY_FILE = 'empty';

/** The command that starts the copy in this directory. */
export function perlAt(directory: string): readonly string[] {
  return [
    `${directory}/loader`,
    // Ignores the library cache of the image.
    '--inhibit-cache',
    '--library-path',
    `${directory}/lib`,
    `${directory}/perl`,
    '-f',
    `-I${directory}/modules`,
  ];
}

/** The command that starts Perl inside. */
export function perlInside(root: SandboxRoot, ofHost = 'perl'): readonly string[] {
  return root.kind === 'host' ? [ofHost] : perlAt(INTERPRETER);
}

/** Creates the copy if needed, and returns its directory. */
export async function ensureInterpreter(perl: string, cacheDir: string): Promise<string> {
  const { mtimeMs, size } = statSync(perl);
  const directory = join(cacheDir, `perl-${FORMAT}-${Math.round(mtimeMs).toString(36)}-${size.toString(36)}`);
  if (statSync(directory, { throwIfNoEntry: false }) !== undefined) return directory;
  const { modules, objects } = await usedFiles(perl);
  const { loader, libraries } = await neededLibraries([perl, ...objects]);
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 });
  const made = mkdtempSync(join(cacheDir, 'perl-new-'));
  try {
    for (const dir of ['lib', 'modules']) mkdirSync(join(made, dir), { recursive: true });
    writeFileSync(join(made, EMPTY_FILE), '');
    copyFileSync(perl, join(made, 'perl'));
    copyFileSync(loader, join(made, 'loader'));
    for (const [name, from] of libraries) copyFileSync(from, join(made, 'lib', name));
    for (const [name, from] of modules) {
      const to = join(made, 'modules', name);
      mkdirSync(dirname(to), { recursive: true });
      copyFileSync(from, to);
    }
    await openToAll(made);
    renameSync(made, directory);
  } catch (error) {
    rmSync(made, { recursive: true, force: true });
    // Another process was faster.
    if (errorCode(error) !== 'ENOTEMPTY' && errorCode(error) !== 'EEXIST') throw error;
  }
  return directory;
}

/** Increase this when the modules below change. */
const FORMAT = 1;
const MODULES = ['POSIX', 'Errno', 'Socket', 'IO::Socket::INET', 'Exporter::Heavy', 'Carp'];

const LIST = `require DynaLoader;
for my $name (sort keys %INC) { print "m\\t$name\\t$INC{$name}\\n" if $INC{$name} =~ m{^/} }
for my $file (@DynaLoader::dl_shared_objects) { my ($name) = $file =~ m{/(auto/.+)$} or die; print "o\\t$name\\t$file\\n" }
`;

interface UsedFiles {
  readonly modules: readonly (readonly [name: string, from: string])[];
  readonly objects: readonly string[];
}

async function usedFiles(perl: string): Promise<UsedFiles> {
  const rows = (await ask([perl, '-f', ...MODULES.map((name) => `-M${name}`), '-e', LIST]))
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.split('\t') as [string, string, string]);
  return {
    modules: rows.map(([, name, from]) => [name, from]),
    objects: rows.flatMap(([kind, , from]) => (kind === 'o' ? [from] : [])),
  };
}

/** The libraries that the loader of this machine finds, by the requested names. */
async function neededLibraries(
  programs: readonly string[],
): Promise<{ readonly loader: string; readonly libraries: ReadonlyMap<string, string> }> {
  const lines = (await ask(['ldd', ...programs])).split('\n').map((line) => line.trim());
  const libraries = new Map(
    lines.flatMap((line): [string, string][] => {
      const [, name, path] = /^(\S+) => (\/\S+) /.exec(line) ?? [];
      return name === undefined || path === undefined ? [] : [[name, path]];
    }),
  );
  const loader = lines
    .flatMap((line) => /^(\/\S+) \(/.exec(line)?.[1] ?? [])
    .find((path) => basename(path).startsWith('ld'));
  if (loader === undefined) throw failed('the loader of this machine was not found');
  return { loader, libraries };
}

async function openToAll(directory: string): Promise<void> {
  chmodSync(directory, 0o755);
  await ask(['chmod', '-R', 'u=rwX,go=rX', directory]);
  for (const program of ['perl', 'loader']) chmodSync(join(directory, program), 0o755);
}

async function ask(argv: readonly string[]): Promise<string> {
  const { exitCode, stdout, stderr } = await run(argv, { env: { PATH: '/usr/bin:/bin', LC_ALL: 'C' } });
  if (exitCode !== 0) throw failed(stderr.trim().split('\n')[0] ?? '');
  return stdout.toString('utf8');
}

function failed(why: string): AgsError {
  return new AgsError('backend.failed', `Perl could not be copied for a sandbox over an image: ${why}`);
}
