// sandbox/checks/machine-facts.ts: the facts that the checks of this folder use. Slow facts are promises, so that all run in parallel.
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
  /** Searches the directories that a sandbox uses, never PATH. */
  readonly find: (program: string) => string | null;
  readonly host: Promise<NativeHost | AgsError>;
  /** null: the host lacks what a trial needs. */
  readonly trial: Promise<{
    readonly problem: Problem | null;
    readonly overlay: { readonly works: boolean; readonly why: string };
    readonly namespaces: boolean;
    readonly startMs: number;
  } | null>;
  readonly limits: Promise<Limits>;
}
