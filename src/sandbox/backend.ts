// sandbox/backend.ts: a way to isolate. Every backend passes the same conformance suite (test/conformance).
import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import type { SandboxSpec } from '../protocol/spec.ts';

/** The command's own descriptors: what a caller's terminal, pipe or file is. */
export interface Stdio {
  readonly stdin: number | 'ignore' | 'pipe';
  readonly stdout: number | 'pipe';
  readonly stderr: number | 'pipe';
  /** A pseudo-terminal slave of ours that becomes the command's controlling terminal. */
  readonly terminal: number | null;
}

export interface Sandbox {
  /** PID 1 of the sandbox, as the host sees it; null: it is on another machine. */
  readonly initPid: number | null;
  readonly stdin: NodeJS.WritableStream | null;
  readonly stdout: NodeJS.ReadableStream | null;
  readonly stderr: NodeJS.ReadableStream | null;
  /** Resolves when no process of the sandbox is left. 128 + n when the command died of signal n. */
  readonly done: Promise<number>;
  /**
   * When it is done: what ended it, or a process of it, before its time, as far as the backend itself can tell. The kernel for want of
   * memory; that the connection to its machine was lost.
   */
  cutShort(): 'memory' | 'connection' | null;
  /**
   * A connection to a server inside, at this port of its loopback. Rejects if nobody listens there, or if the spec did not
   * ask for `reach`.
   */
  connect(port: number): Promise<Socket>;
  /**
   * A door more, at this port of its loopback, while it runs. Rejects if the port is taken, or without `reach`. `address`: another
   * one than 127.0.0.1.
   */
  open(port: number, address?: string): Promise<Server>;
  /** Delivers a signal to the command, as its terminal would. */
  signal(name: NodeJS.Signals): void;
  /** Ends every process inside at once. */
  kill(): void;
}

/** In the directory of a run: what it wrote on another machine has not come back from there. */
export const FAR_MEMO = 'far.json';

/** Takes one of the spec's doors: whoever connects to it inside is met here. They are closed when the sandbox is over. */
export type OnDoor = (name: string, handle: Server | DatagramSocket) => void;

export interface Backend {
  readonly name: 'native' | 'docker' | 'podman';
  /**
   * Rejects, and leaves nothing behind, unless every restriction in `spec` is in force. `onDoor` has had every door before the
   * command runs.
   */
  start(spec: SandboxSpec, command: readonly string[], stdio: Stdio, onDoor?: OnDoor): Promise<Sandbox>;
}
