// test/images/tiny-image.ts: makes images of busybox in less than a second.
// uses: busybox
import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ENGINE } from '../conformance/docker-backend.ts';

export const engine = (...args: string[]): string =>
  execFileSync(ENGINE.program, args, { env: ENGINE.env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();

export interface Wish {
  /** By path: content, the target of a link, or a file to copy. */
  readonly files?: Readonly<Record<string, string | { readonly link: string } | { readonly copy: string }>>;
  /** Instructions of a Dockerfile. */
  readonly says?: readonly string[];
  readonly setUserId?: boolean;
}

const APPLETS = [
  'sh',
  'cat',
  'id',
  'ls',
  'env',
  'echo',
  'sleep',
  'touch',
  'wget',
  'tty',
  'kill',
  'ps',
  'nc',
  'mkdir',
  'rm',
];

/** Makes an image that `using` removes. */
export function tinyImage(
  { files = {}, says = [], setUserId = false }: Wish = {},
  by = ENGINE,
): Disposable & {
  readonly name: string;
} {
  const name = `ags-test-${process.pid}-${Math.random().toString(36).slice(2, 10)}:tiny`;
  const dir = mkdtempSync('/var/tmp/ags-tiny-');
  chmodSync(dir, 0o755);
  try {
    mkdirSync(join(dir, 'bin'));
    copyFileSync('/bin/busybox', join(dir, 'bin/busybox'));
    chmodSync(join(dir, 'bin/busybox'), setUserId ? 0o4755 : 0o755);
    for (const applet of APPLETS) symlinkSync('busybox', join(dir, 'bin', applet));
    for (const [path, what] of Object.entries(files)) {
      const at = join(dir, path);
      mkdirSync(dirname(at), { recursive: true });
      if (typeof what === 'string') writeFileSync(at, what);
      else if ('link' in what) symlinkSync(what.link, at);
      else copyFileSync(what.copy, at);
    }
    const changes = says.flatMap((line) => ['--change', line]);
    const packed = execFileSync('tar', ['--owner=0', '--group=0', '-C', dir, '-cf', '-', '.'], { maxBuffer: 2 ** 28 });
    execFileSync(by.program, [...by.options, 'import', ...changes, '-', name], {
      cwd: '/',
      env: by.env,
      input: packed,
      stdio: 'pipe',
    });
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
  return {
    name,
    [Symbol.dispose]: () =>
      void execFileSync(by.program, [...by.options, 'image', 'rm', '--force', name], {
        cwd: '/',
        env: by.env,
        stdio: 'pipe',
      }),
  };
}
