// sandbox/container/build-wrapper.ts: an engine without a daemon builds where its command was started. So it is started in the network of
// a sandbox, which it takes for the host's, and in its own PID namespace.
// Invariant: build steps and the engine itself have no network but the sandbox's; when the sandbox ends, so does the build.
import { readlinkSync } from 'node:fs';
import { perlProgram } from '../../lib/perl.ts';
import { engineArgv, type Engine } from '../engine/engine.ts';

// mount, unshare, setns, prctl; pidfd_open has the same number on every architecture.
const CALLS = { x64: '165,272,308,157', arm64: '40,97,268,167' } as const;

/** Prepended to the engine's command line, which then says `--network host`. */
export function buildWrapperArgv(
  engine: Engine,
  options: {
    readonly perl: string;
    readonly arch: keyof typeof CALLS;
    readonly sandboxPid: number;
    readonly hosts: string;
  },
): string[] {
  return [
    ...(engine.rootless ? engineArgv(engine, ['unshare']) : []),
    options.perl,
    '-e',
    perlProgram('sandbox/perl/build-wrapper.pl'),
    '--',
    CALLS[options.arch],
    String(options.sandboxPid),
    readlinkSync('/proc/self/ns/net'),
    options.hosts,
  ];
}
