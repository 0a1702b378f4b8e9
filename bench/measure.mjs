// bench/measure.mjs: the wall time of a command, and the processor time of it and everything it starts.
// Invariant: the wrapper reaps all orphans of its command, so their processor time counts. Unlike wall time, processor time hardly depends on
// other load.
import { spawn, spawnSync } from 'node:child_process';

const NUMBERS = { x64: { prctl: 157, getrusage: 98 }, arm64: { prctl: 167, getrusage: 165 } }[process.arch];
if (NUMBERS === undefined) throw new Error(`no system call numbers for ${process.arch}`);

// Arguments: system call numbers, the descriptor to report on, the command. Reports: wall ms, processor ms, exit status, signal.
const WRAPPER = `use strict; use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my ($prctl, $getrusage) = split /,/, shift @ARGV;
my $report = shift @ARGV;
syscall($prctl, 36, 1, 0, 0, 0) == 0 or die "become a reaper: $!";
my $start = clock_gettime(CLOCK_MONOTONIC);
my $pid = fork() // die "fork: $!";
if (!$pid) { exec { $ARGV[0] } @ARGV or exit 127 }
waitpid $pid, 0;
my ($end, $status) = (clock_gettime(CLOCK_MONOTONIC), $?);
1 while wait() != -1;
my $usage = "\\0" x 144;
syscall($getrusage, -1, $usage) == 0 or die "getrusage: $!";
my ($us, $uu, $ss, $su) = unpack 'q4', $usage;
open my $out, '>&=', $report or die "report: $!";
printf $out "measured %.3f %.3f %d %d\\n", ($end - $start) * 1000, ($us + $ss) * 1000 + ($uu + $su) / 1000, $status >> 8, $status & 127;
`;

/** The command behind the wrapper, for places that only take a command line, such as a sandbox. */
export function measured(argv, report = 3) {
  return ['/usr/bin/perl', '-e', WRAPPER, `${NUMBERS.prctl},${NUMBERS.getrusage}`, String(report), ...argv];
}

export function parseMeasured(text, what) {
  const [, wall, cpu, status, signal] = /^measured (\S+) (\S+) (\d+) (\d+)$/m.exec(text) ?? [];
  if (wall === undefined) throw new Error(`${what} reported nothing: ${text}`);
  if (status !== '0' || signal !== '0') throw new Error(`${what} failed (status ${status}, signal ${signal}): ${text}`);
  return { wallMs: Number(wall), cpuMs: Number(cpu) };
}

/** Runs a command of `actor` to its end. Any failure is an error, because a failed run may be fast. */
export function measure(actor, argv, { cwd = actor.home, env = {}, input } = {}) {
  const [file, ...args] = measured(argv);
  const done = spawnSync(file, args, {
    ...actor.identity,
    cwd,
    env: { ...actor.env, ...env },
    input: input ?? '',
    stdio: ['pipe', 'pipe', 'pipe', 'pipe'],
    maxBuffer: 256 * 1024 ** 2,
  });
  const what = argv.join(' ').slice(0, 200);
  const report = `${done.output?.[3] ?? ''}`;
  try {
    return { ...parseMeasured(report, what), stdout: `${done.stdout}`, stderr: `${done.stderr}` };
  } catch (error) {
    throw new Error(`${error.message}\n${done.stdout}\n${done.stderr}`, { cause: error });
  }
}

/** Starts a command without waiting, to run several at once. */
export function start(actor, argv, { cwd = actor.home, env = {} } = {}) {
  const [file, ...args] = argv;
  return spawn(file, args, { ...actor.identity, cwd, env: { ...actor.env, ...env }, stdio: ['pipe', 'pipe', 'pipe'] });
}

/**
 * Measures all variants once per round, each round in another order, so that other load affects all alike. Ends early when the time is up,
 * but not before the third round. Returns each variant's results by round.
 */
export function interleave({ rounds, seconds }, variants) {
  const names = Object.keys(variants);
  const results = Object.fromEntries(names.map((name) => [name, []]));
  const began = performance.now();
  for (let round = 0; round < rounds; round += 1) {
    if (round >= 3 && performance.now() - began > seconds * 1000) break;
    for (let i = 0; i < names.length; i += 1) {
      const name = names[(i + round) % names.length];
      results[name].push(variants[name]());
    }
  }
  return results;
}
