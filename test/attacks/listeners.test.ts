// test/attacks/listeners.test.ts: a launcher or a bubblewrap that lies about the network: the command does not run.
// needs: sandbox
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { SandboxNetwork } from '../../src/protocol/spec.ts';
import { ALSO_AS_USER, runAgain } from '../conformance/again.ts';
import { openNative, type Instead } from '../conformance/native-backend.ts';
import { createPlace } from '../conformance/place.ts';

const LOOPBACK: SandboxNetwork = { kind: 'loopback' };
const GATEWAY: SandboxNetwork = {
  kind: 'gateway',
  // If the network is shared, these are ports of the host.
  listeners: [27_391, 27_392].map((port) => ({
    name: `port ${port}`,
    protocol: 'tcp',
    address: '127.0.0.1',
    port,
  })),
  reach: false,
};

/** The launcher with these replacements; each must match. */
const changed = (...changes: readonly (readonly [from: string, to: string])[]): Instead => ({
  prefix: [
    'perl',
    '-e',
    `${changes.map(([from, to]) => `grep { s/${from}/${to}/s } @ARGV or die; `).join('')}exec @ARGV`,
    '--',
  ],
});

/** The code of the error, or the output of the command. */
async function attempt(network: SandboxNetwork, instead: Instead): Promise<string> {
  using place = await createPlace((directory) => openNative(directory, instead));
  try {
    const { stdout, stderr } = await place.run(['echo', 'the command ran'], { spec: place.spec([], { network }) });
    return stdout + stderr;
  } catch (error) {
    return String((error as { code?: string }).code);
  }
}

test('A41: with nothing changed, the command runs', async () => {
  const nothing = changed(['use strict;', 'use strict;']);
  expect([await attempt(LOOPBACK, nothing), await attempt(GATEWAY, nothing)]).toEqual([
    'the command ran\n',
    'the command ran\n',
  ]);
});

test('A41: a bubblewrap that leaves the network out is noticed from outside', async () => {
  const dir = mkdtempSync('/tmp/ags-bwrap-');
  chmodSync(dir, 0o755);
  const bwrap = join(dir, 'bwrap');
  const forget = `open my $in, '<&=', 3; local $/; my $args = <$in>; $args =~ s/--unshare-net\\0// or die; pipe my $r, my $w; if (!fork) { print $w $args; exit } close $w; require POSIX; POSIX::dup2(fileno $r, 3); exec '/usr/bin/bwrap', @ARGV`;
  writeFileSync(bwrap, `#!/usr/bin/perl\n${forget}\n`, { mode: 0o755 });
  try {
    expect(await attempt(LOOPBACK, { bwrap })).toBe('backend.unprotected');
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
});

test('A41: a launcher that makes no network is noticed from outside', async () => {
  const shared = changed(['syscall\\(\\$unshare, 0x40000000\\).*?bring_up\\(.lo.\\);', '']);
  expect(await attempt(GATEWAY, shared)).toBe('backend.unprotected');
});

test('a sandbox without one of its listeners does not run', async () => {
  const silent = changed(
    ['\\(0 \\.\\. \\$#listeners\\)', '(1 .. \\$#listeners)'],
    ['1 while \\$heard.*?;', 'sleep 1;'],
  );
  expect(await attempt(GATEWAY, silent)).toBe('backend.failed');
});

if (ALSO_AS_USER)
  test('an ordinary user is protected in the same way', async () => {
    const { passed, failed, other } = await runAgain({ file: String(expect.getState().testPath), uid: 42_424 });
    expect({ failed, other, passed: passed.length }).toEqual({ failed: [], other: [], passed: 4 });
  }, 310_000);
