// sandbox/checks/machine-facts.ts: what the checks of this folder know. What takes time is a promise, so that all run at once.
import type { AgsError } from '../../protocol/errors.ts';
import type { Limits } from '../../protocol/spec.ts';
import type { NativeHost } from './host.ts';
import type { Problem } from './failure.ts';
import type { KernelFacts } from './kernel-facts.ts';

export interface MachineFacts {
  readonly platform: string;
  readonly nodeArch: string;
  readonly nodeVersion: string;
  readonly kernel: string;
  readonly uid: number;
  readonly stateDir: string;
  readonly kernelFacts: KernelFacts;
  /** Looks where a sandbox would look, never in PATH. */
  readonly find: (program: string) => string | null;
  readonly host: Promise<NativeHost | AgsError>;
  /** null: there was no host to try on. */
  readonly trial: Promise<{
    readonly problem: Problem | null;
    readonly overlay: { readonly works: boolean; readonly why: string };
    readonly namespaces: boolean;
    readonly startMs: number;
  } | null>;
  readonly limits: Promise<Limits>;
}
