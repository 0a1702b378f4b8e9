// sandbox/io/attach.ts: from the spawned launcher to a running sandbox: bwrap's report, our go signal, and the end.
// Invariant: the go signal is sent only when the sandbox's first process dies with us, has its filter and its own network, and we have
// all of its listeners. A failure before that ends everything that was started.
import type { ChildProcess } from 'node:child_process';
import { closeSync, openSync, readSync, unlinkSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { AgsError } from '../../protocol/errors.ts';
import { errorCode } from '../../lib/error-code.ts';
import { signalNumber } from '../../lib/process/process.ts';
import type { Sandbox } from '../backend.ts';
import type { Listeners } from './listeners.ts';
import { DESCRIPTORS } from './descriptors.ts';
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

/** Creating namespaces and mounts takes milliseconds, or seconds on an overloaded machine. */
const ANSWER_S = 20;

/** A first process that sleeps without a filter for this long will not install one. */
const SURE_S = 1;
/** Other processes copy the output of a failed bwrap, which takes a moment. */
const LATE_MS = 5000;

export interface AttachOptions {
  readonly answerSeconds?: number;
  /** Checks what else the first process must have given up. Returns what it kept, as part of a sentence. */
  readonly lacking?: (initPid: number) => string | null;
  /** False while the go signal must wait, for example for the reader of the command's output. */
  readonly mayGo?: () => boolean;
}

/** Resolves once bwrap has created its namespaces; rejects if it ends before. */
export function attach(
  child: ChildProcess,
  status: number,
  listeners: Listeners,
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
        listeners.close();
        const absent = new AgsError('backend.failed', `The sandbox launcher could not be started: ${error.message}`, {
          hint: 'Find out why with: ags doctor',
          cause: error,
        });
        reject(absent);
        fail(absent);
      });
      child.on('exit', () => {
        listeners.close();
        // A bwrap that ends during set-up leaves a child that waits for the go signal for ever.
        const left = init ?? suspect;
        if (left !== null) killExactly(left);
        // Its output may still be on its way; processes left after that wait for nothing.
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
          // Our own signal ended it before bwrap reported the start.
          (code !== null && sent.has(code - 128) ? code : null);
        // Without a known first process the go signal was never sent.
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
    // The outer promise alone reports a failure before the start.
    done.catch(() => undefined);
    // Not performance.now(), which is loaded on first use, and that takes as long as starting a program.
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
          connect: listeners.connect,
          open: listeners.open,
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
      // bwrap ends with its child; the stream broker of a container waits for the go signal.
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
      if (network === 'own' && listeners.state === 'open' && mayGo?.() !== false)
        return feed(child, DESCRIPTORS.go, '\n');
      if (
        filtered &&
        listeners.state !== 'open' &&
        (listeners.state === 'lost' || process.uptime() - begun > answerSeconds)
      )
        return refuse(
          init,
          new AgsError('backend.failed', 'The sandbox has no listener for the gateway; the command was not run.', {
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

/** The process may end at any moment, and its /proc files with it. A live process that cannot be read is not trusted. */
function faultOf(init: Init, lacking: NonNullable<AttachOptions['lacking']>): AgsError | null {
  try {
    const kept = lacking(init.pid);
    return kept === null ? null : unprotected(`The sandbox is not protected as planned: ${kept}`, kept);
  } catch (error) {
    // A process that is just ending still has its directory in /proc, but no namespaces any more.
    if (!lives(init) || ['ENOENT', 'ESRCH'].includes(errorCode(error) ?? '')) return endedEarly();
    const unknown = `its protection could not be read (${(error as Error).message})`;
    return unprotected(`The sandbox could not be verified: ${unknown}`, unknown);
  }
}

export function endedEarly(): AgsError {
  return new AgsError('backend.failed', 'The container ended before the command could start; it was not run.', {
    hint: 'Perhaps the machine ran out of memory. Try again, and see what works here: ags doctor',
  });
}

/** `lacking` is the same fact as part of a sentence about a test sandbox. */
function unprotected(what: string, lacking: string): AgsError {
  return new AgsError('backend.unprotected', `${what}; the command was not run.`, {
    hint: 'Is bwrap the program of your distribution? See: ags doctor',
    details: { lacking },
  });
}

/** With a terminal, the command's input is a separate descriptor. */
function inputOf(child: ChildProcess): Writable | null {
  const separate = (child.stdio as readonly unknown[] | undefined)?.[DESCRIPTORS.stdin];
  return separate instanceof Writable ? separate : child.stdin;
}

export function feed(child: ChildProcess, descriptor: number, data: string | Buffer): void {
  // A child that could not be started has no streams.
  const streams = child.stdio as readonly unknown[] | undefined;
  const pipe = streams?.[descriptor] as NodeJS.WritableStream | undefined;
  // The launcher may die before it has read everything; its exit is reported elsewhere.
  pipe?.on('error', () => undefined);
  pipe?.end(data);
}

/** bwrap reports into a file: with a broken pipe, bwrap would die and leave a half-built sandbox that waits for ever. */
export function openStatus(runDir: string): number {
  const path = join(runDir, `status-${process.pid}`);
  const fd = openSync(path, 'w+', 0o600);
  unlinkSync(path);
  // The space for the report is allocated now, while a full disk can still be reported.
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
