// sandbox/remote/streams.ts: the standard streams and the terminal of a remote command.
// Invariant: the caller's descriptors stay as they are. Separate programs read and write them, because reading a descriptor in this
// process would change it for every process that shares it.
import { spawn, type ChildProcess } from 'node:child_process';
import { constants, openSync } from 'node:fs';
import type { Duplex } from 'node:stream';
import { WriteStream } from 'node:tty';
import type { Stdio } from '../backend.ts';
import { STREAM, type Channel } from './channel.ts';

/** Describes the streams to the relay: their kind, and which of the three are pipes. */
export function describeStreams({ stdin, stdout, stderr, terminal }: Stdio): { kind: string; pipes: string } {
  const kind = terminal === null ? 'plain' : stdin === terminal ? 'terminal' : 'apart';
  const pipes = [stdin, stdout, stderr].map((one) => (terminal !== null && one === terminal ? 't' : 'p')).join('');
  return { kind, pipes };
}

export interface RemoteStreams {
  readonly stdin: Duplex | null;
  readonly stdout: Duplex | null;
  readonly stderr: Duplex | null;
  /** Call it after the command: resolves when all output has reached the caller's descriptors. */
  finish(): Promise<void>;
}

const ENV = { PATH: '/usr/bin:/bin' };

export function joinStreams(channel: Channel, stdio: Stdio): RemoteStreams {
  const readers: ChildProcess[] = [];
  const writers: Promise<unknown>[] = [];
  const from = (fd: number, stream: Duplex): void => {
    const reader = spawn('cat', [], { env: ENV, stdio: [fd, 'pipe', 'ignore'] });
    readers.push(reader.on('error', () => stream.destroy()));
    reader.stdout?.pipe(stream);
    stream.on('close', () => reader.kill());
  };
  const into = (stream: Duplex, fd: number): void => {
    const writer = spawn('cat', [], { env: ENV, stdio: ['pipe', fd, 'ignore'] });
    writers.push(new Promise((resolve) => writer.once('close', resolve).once('error', resolve)));
    writer.on('error', () => stream.destroy());
    writer.stdin?.on('error', () => stream.destroy());
    // A stream that was cut off ends silently.
    stream.on('close', () => writer.stdin?.end());
    writer.on('exit', () => stream.destroy());
    if (writer.stdin !== null) stream.pipe(writer.stdin);
  };
  const isTerminal = (one: Stdio['stdin'] | Stdio['stdout']): boolean =>
    stdio.terminal !== null && one === stdio.terminal;
  const output = (what: number | 'pipe', id: number): Duplex | null => {
    if (isTerminal(what)) return null;
    const stream = channel.stream(id);
    if (what === 'pipe') return stream;
    into(stream, what);
    return null;
  };
  let stdin: Duplex | null = null;
  if (!isTerminal(stdio.stdin)) {
    const stream = channel.stream(STREAM.stdin);
    if (stdio.stdin === 'pipe') stdin = stream;
    else if (stdio.stdin === 'ignore') stream.end();
    else from(stdio.stdin, stream);
    stream.resume();
  }
  const stdout = output(stdio.stdout, STREAM.stdout);
  const stderr = output(stdio.stderr, STREAM.stderr);
  const window = stdio.terminal === null ? null : joinTerminal(channel, stdio.terminal, from, into);
  return {
    stdin,
    stdout,
    stderr,
    async finish() {
      window?.close();
      await Promise.all(writers);
      for (const reader of readers) reader.kill();
    },
  };
}

/** The remote terminal does all processing; the local one passes every byte. */
function joinTerminal(
  channel: Channel,
  fd: number,
  from: (fd: number, stream: Duplex) => void,
  into: (stream: Duplex, fd: number) => void,
): { close(): void } {
  const stream = channel.stream(STREAM.terminal);
  const raw = spawn('stty', ['raw', '-echo'], { env: ENV, stdio: [fd, 'ignore', 'ignore'] });
  raw.once('close', () => from(fd, stream)).on('error', () => undefined);
  into(stream, fd);
  const tell = (): void => {
    const screen = new WriteStream(openSync(`/proc/self/fd/${fd}`, constants.O_RDWR | constants.O_NOCTTY));
    const [columns, rows] = screen.getWindowSize();
    screen.destroy();
    const body = Buffer.alloc(4);
    body.writeUInt16BE(rows, 0);
    body.writeUInt16BE(columns, 2);
    channel.send('z', 0, body);
  };
  tell();
  // The window's owner gets the signal at the same time, and updates our terminal first.
  const resized = (): void => void setTimeout(tell, 20).unref();
  process.on('SIGWINCH', resized);
  return { close: () => void process.off('SIGWINCH', resized) };
}
