// sandbox/io/attach.ts: from the spawned launcher to a running sandbox: bwrap's report, our word to go, and the end.
// Invariant: the word is given only when the sandbox's first process dies with us, has its filter and a network of its own, and
// when we have every door in it; whatever goes wrong before that ends everything that was started.
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { AgsError } from '../../protocol/errors.ts';
import { signalNumber } from '../../lib/process/process.ts';
import type { Sandbox } from '../backend.ts';
import type { Doors } from './listeners.ts';
import { DESCRIPTORS } from '../native/launch.ts';
import {
  gone,
  identify,
  isFiltered,
  killBoth,
  killExactly,
  killGroup,
  lives,
  namespacedChild,
  networkOf,
  signalCommand,
  waits,
  type Init,
} from './processes.ts';

/** Making namespaces and mounts takes milliseconds; on a machine that is out of breath, seconds. */
const ANSWER_S = 20;

/** A first process that sleeps without a filter for this long has none. */
const SURE_S = 1;
/** What a bwrap that failed has said is copied by others, who need a moment. */
const LATE_MS = 5000;

export interface AttachOptions {
  readonly answerSeconds?: number;
  /** What else the first process must have given up: what it has not, as a part of a sentence. */
  readonly lacking?: (initPid: number) => string | null;
  /** False as long as the word must wait: whoever is to read what the command says may not be there yet. */
  readonly mayGo?: () => boolean;
}

/** Resolves once bwrap has made its namespaces; rejects if it ends before that. */
export function attach(
  child: ChildProcess,
  status: number,
  doors: Doors,
  { answerSeconds = ANSWER_S, lacking, mayGo }: AttachOptions = {},
): Promise<Sandbox> {
  return new Promise((resolve, reject) => {
    let init: Init | null = null;
    let suspect: Init | null = null;
    let ended = false;
    let killed = false;
    let starved = false;
    let unfiltered: number | null = null;
    let failure: AgsError | null = null;
    let late: NodeJS.Timeout | undefined;
    const sent = new Set<number>();
    const done = new Promise<number>((finish, fail) => {
      child.on('error', (error) => {
        ended = true;
        doors.close();
        const absent = new AgsError('backend.failed', `The sandbox launcher could not be started: ${error.message}`, {
          hint: 'Find out why with: ags doctor',
          cause: error,
        });
        reject(absent);
        fail(absent);
      });
      child.on('exit', () => {
        doors.close();
        // A bwrap that ends in the middle of its set-up leaves a child that waits for its word for ever.
        const left = init ?? suspect;
        if (left !== null) killExactly(left);
        // What it said may still be on its way; whoever else is left after that waits for nothing.
        if (init === null) late = setTimeout(() => killGroup(child), LATE_MS);
      });
      child.on('close', (code, signal) => {
        ended = true;
        clearTimeout(late);
        const report = readStatus(status);
        closeSync(status);
        starved = report.starved;
        if (failure !== null) return fail(failure);
        const died = killed ? 'SIGKILL' : signal;
        const exitCode =
          report.exitCode ??
          (report.initPid !== null && died !== null ? 128 + signalNumber(died) : null) ??
          // It was ended by a signal of ours before bwrap could say that it had begun.
          (code !== null && sent.has(code - 128) ? code : null);
        // Without its process the word to go was never given.
        if (exitCode !== null && init !== null)
          return void gone(init).then(() => finish(exitCode === 0 && report.outputLost ? 1 : exitCode));
        const broken = new AgsError(
          'backend.failed',
          `The sandbox could not be set up (${signal ?? `exit ${code}`}); the command was not run.`,
          { hint: 'The line above says what failed. See also: ags doctor' },
        );
        reject(broken);
        fail(broken);
      });
    });
    // A failure before the start is reported by the outer promise alone.
    done.catch(() => undefined);
    // Not performance.now(), which has to be loaded first and takes as long as a program to start.
    const begun = process.uptime();
    const look = (): void => {
      if (ended || killed) return;
      if (init === null && process.uptime() - begun > answerSeconds) {
        killGroup(child);
        return reject(
          new AgsError(
            'backend.unprotected',
            `The sandbox did not answer in ${answerSeconds} seconds; the command was not run.`,
            {
              hint: 'Is the machine busy, or a file system not reachable? See also: ags doctor',
            },
          ),
        );
      }
      const pid = init === null ? readStatus(status).initPid : null;
      if (init === null) suspect = identify(namespacedChild(child.pid ?? 0)) ?? suspect;
      if (pid !== null) {
        const found = identify(pid) ?? { pid, startTicks: '' };
        init = found;
        resolve({
          initPid: pid,
          stdin: inputOf(child),
          stdout: child.stdout,
          stderr: child.stderr,
          done,
          cutShort: () => (starved ? 'memory' : null),
          connect: doors.connect,
          open: doors.open,
          signal(name) {
            sent.add(signalNumber(name));
            void signalCommand(pid, name);
          },
          kill() {
            killed = true;
            killBoth(child, found);
          },
        });
      }
      if (init === null) return void setTimeout(look, 1);
      // bwrap ends with its child; who stands beside a container waits for our word.
      if (lacking !== undefined && !lives(init)) return refuse(init, endedEarly());
      const filtered = isFiltered(init.pid);
      const network = filtered ? networkOf(init.pid) : null;
      if (network === 'shared')
        return refuse(
          init,
          unprotected('The sandbox has no network of its own', 'it shared the net namespace of this machine'),
        );
      const fault = network === 'own' && lacking !== undefined ? faultOf(init, lacking) : null;
      if (fault !== null) return refuse(init, fault);
      if (network === 'own' && doors.state === 'open' && mayGo?.() !== false) return feed(child, DESCRIPTORS.go, '\n');
      if (filtered && doors.state !== 'open' && (doors.state === 'lost' || process.uptime() - begun > answerSeconds))
        return refuse(
          init,
          new AgsError('backend.failed', 'The sandbox came without a door to the gateway; the command was not run.', {
            hint: 'Find out why with: ags doctor',
          }),
        );
      if (!filtered && waits(init.pid)) unfiltered ??= process.uptime();
      if (unfiltered !== null && process.uptime() - unfiltered >= SURE_S)
        return refuse(
          init,
          unprotected(
            'The first process of the sandbox took no system call filter',
            'its system calls were not filtered',
          ),
        );
      setTimeout(look, 1);
    };
    const refuse = (first: Init, why: AgsError): void => {
      failure = why;
      killBoth(child, first);
      killGroup(child);
    };
    look();
  });
}

/** It may end at any moment, and what there was to read with it; one that lives and cannot be read is not trusted. */
function faultOf(init: Init, lacking: NonNullable<AttachOptions['lacking']>): AgsError | null {
  try {
    const kept = lacking(init.pid);
    return kept === null ? null : unprotected(`The sandbox is not what it should be: ${kept}`, kept);
  } catch (error) {
    if (!lives(init)) return endedEarly();
    const unknown = `what it had given up could not be read (${(error as Error).message})`;
    return unprotected(`The sandbox was not let go on: ${unknown}`, unknown);
  }
}

export function endedEarly(): AgsError {
  return new AgsError('backend.failed', 'The container ended before the command could start; it was not run.', {
    hint: 'Perhaps the machine ran out of memory. Try again, and see what works here: ags doctor',
  });
}

/** `lacking` is the same as a part of a sentence about a test sandbox. */
function unprotected(what: string, lacking: string): AgsError {
  return new AgsError('backend.unprotected', `${what}; the command was not run.`, {
    hint: 'Is bwrap the program of your distribution? See: ags doctor',
    details: { lacking },
  });
}

/** With a terminal, the input of the command is a descriptor of its own. */
function inputOf(child: ChildProcess): Writable | null {
  const apart = (child.stdio as readonly unknown[] | undefined)?.[DESCRIPTORS.stdin];
  return apart instanceof Writable ? apart : child.stdin;
}

export function feed(child: ChildProcess, descriptor: number, data: string | Buffer): void {
  // Of a child that could not be started there are none.
  const streams = child.stdio as readonly unknown[] | undefined;
  const pipe = streams?.[descriptor] as NodeJS.WritableStream | undefined;
  // The launcher may die before it has read everything; its exit tells the story.
  pipe?.on('error', () => undefined);
  pipe?.end(data);
}

/**
 * Where bwrap reports: a file, because a bwrap that could not report to us any more would die and leave the half-made
 * sandbox behind, waiting for ever.
 */
export function openStatus(runDir: string): number {
  const path = join(runDir, `status-${process.pid}`);
  const fd = openSync(path, 'w+', 0o600);
  unlinkSync(path);
  // Room for what it will say is taken now, while a full disk is an error that can be told.
  const room = Buffer.alloc(STATUS_BYTES, ' ');
  for (let at = 0; at < room.length;) at += writeSync(fd, room, at, room.length - at, at);
  return fd;
}

const STATUS_BYTES = 1024;

/** The sandbox's PID 1, and the exit code if the command was really started. */
function readStatus(status: number): {
  initPid: number | null;
  exitCode: number | null;
  outputLost: boolean;
  starved: boolean;
} {
  const bytes = Buffer.alloc(STATUS_BYTES);
  const text = bytes.toString('latin1', 0, readSync(status, bytes, 0, bytes.length, 0));
  const number = (name: string): number | null => {
    const digits = new RegExp(`"${name}":\\s*(\\d+)[\\s,}]`).exec(text)?.[1];
    return digits === undefined ? null : Number(digits);
  };
  return {
    initPid: number('child-pid'),
    exitCode: number('exit-code'),
    outputLost: number('output-lost') !== null,
    starved: number('starved') !== null,
  };
}
