// sandbox/backend.ts: the interface of a backend. Every backend passes the same conformance suite (test/conformance).
import type { Socket as DatagramSocket } from 'node:dgram';
import type { Server, Socket } from 'node:net';
import type { SandboxSpec } from '../protocol/spec.ts';

/** The descriptors of the command's streams: a terminal, a pipe or a file of the caller. */
export interface Stdio {
  readonly stdin: number | 'ignore' | 'pipe';
  readonly stdout: number | 'pipe';
  readonly stderr: number | 'pipe';
  /** The slave end of our pseudo-terminal, which becomes the command's controlling terminal. */
  readonly terminal: number | null;
}

export interface Sandbox {
  /** The host's process ID of the sandbox's PID 1; null: the sandbox is remote. */
  readonly initPid: number | null;
  readonly stdin: NodeJS.WritableStream | null;
  readonly stdout: NodeJS.ReadableStream | null;
  readonly stderr: NodeJS.ReadableStream | null;
  /** Resolves when no process of the sandbox is left. 128 + n when the command died of signal n. */
  readonly done: Promise<number>;
  /**
   * After `done`: what ended the sandbox or one of its processes early, as far as the backend can tell. 'memory': the kernel killed it
   * for lack of memory. 'connection': the connection to its machine was lost.
   */
  cutShort(): 'memory' | 'connection' | null;
  /**
   * Connects to a server at this port of the sandbox's loopback. Rejects if no server listens there, or if the spec did not ask for
   * `reach`.
   */
  connect(port: number): Promise<Socket>;
  /**
   * Opens another listener at this port of the sandbox's loopback, while it runs. Rejects if the port is taken, or without `reach`.
   * `address` defaults to 127.0.0.1.
   */
  open(port: number, address?: string): Promise<Server>;
  /** Delivers a signal to the command, as its terminal would. */
  signal(name: NodeJS.Signals): void;
  /** Kills every process inside at once. */
  kill(): void;
}

/** This file in a run's directory means that the run's remote files have not been copied back yet. */
export const REMOTE_MEMO = 'far.json';

/** Receives one of the spec's listeners, which gets the connections made inside. Listeners are closed when the sandbox ends. */
export type OnListener = (name: string, handle: Server | DatagramSocket) => void;

export interface Backend {
  readonly name: 'native' | 'docker' | 'podman';
  /**
   * Rejects, and leaves nothing behind, unless every restriction in `spec` is in force. `onListener` has received every listener before
   * the command runs.
   */
  start(spec: SandboxSpec, command: readonly string[], stdio: Stdio, onListener?: OnListener): Promise<Sandbox>;
}
