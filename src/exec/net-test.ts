// exec/net-test.ts: tests which hosts a sandbox of this project can reach, and why not. The test program runs inside and connects
// as any other program would.
import { closeSync, mkdtempSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostAndPort } from '../protocol/host-name.ts';
import { AgsError } from '../protocol/errors.ts';
import type { ConfigFlags } from '../config/effective.ts';
import { removeTree } from '../lib/files.ts';
import { perlProgram } from '../lib/perl.ts';
import { PROXY_PORT } from '../run/network/plan-network.ts';
import { runCommand } from './run-command.ts';
import type { HostContext } from '../run/host-context.ts';

export interface Reached {
  readonly host: string;
  readonly port: number;
  readonly verdict: 'reachable' | 'refused' | 'unreachable';
  /** The gateway's reason; empty for reachable hosts. */
  readonly why: string;
  readonly ms: number;
}

export async function testNetwork(
  context: HostContext,
  flags: ConfigFlags,
  places: readonly { host: string; port: number }[],
  notice: (text: string) => void,
): Promise<Reached[]> {
  const dir = mkdtempSync(join(context.cacheDir, 'net-test-'));
  const file = join(dir, 'answers');
  const stdout = openSync(file, 'w', 0o600);
  try {
    const { exitCode } = await runCommand(context, {
      kind: 'exec',
      command: [
        'perl',
        '-e',
        perlProgram('sandbox/perl/net-test.pl'),
        String(PROXY_PORT),
        ...places.map(({ host, port }) => hostAndPort(host, port)),
      ],
      flags,
      name: 'net-test',
      quiet: true,
      notice,
      openStdio: () =>
        Promise.resolve({
          stdio: { stdin: 'ignore', stdout, stderr: 2, terminal: null },
          close: () => Promise.resolve(),
        }),
    });
    if (exitCode !== 0)
      throw new AgsError('backend.failed', `The network test in the sandbox exited with code ${exitCode}.`, {
        hint: 'It needs perl in /usr/bin. Check this machine: ags doctor',
      });
    return readAnswers(readFileSync(file, 'latin1'), places);
  } finally {
    closeSync(stdout);
    removeTree(dir);
  }
}

function readAnswers(text: string, places: readonly { host: string; port: number }[]): Reached[] {
  const answers = new Map(text.split('\n').map((line) => [line.split('\t')[0] ?? '', line.split('\t')]));
  return places.map(({ host, port }) => {
    const [, kind = '', ms = '0', why = ''] = answers.get(hostAndPort(host, port)) ?? [];
    const verdict = kind === 'reachable' || kind === 'refused' ? kind : 'unreachable';
    return { host, port, verdict, why: kind === '' ? 'no answer' : why, ms: Number(ms) };
  });
}
