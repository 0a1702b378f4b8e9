// sandbox/spec/seccomp.ts: builds the system call filter as the `struct sock_filter[]` that `bwrap --seccomp FD` loads.
// Invariant: every path ends in a verdict. A call of another architecture, or with an unknown number, never passes.
import type { KernelRules } from '../../protocol/spec.ts';
import {
  ALLOW,
  ARCHES,
  ENOSYS,
  enginePolicy,
  FIRST_SHARED,
  KILL,
  kernelPolicy,
  LAST_SHARED,
  NUMBERS,
} from './seccomp-table.ts';
import type { CallName, Decision, Policy, SeccompArch } from './seccomp-table.ts';

export function seccompFilter(arch: SeccompArch, rules: KernelRules): Buffer {
  return assemble(arch, kernelPolicy(rules));
}

export function engineFilter(arch: SeccompArch): Buffer {
  return assemble(arch, enginePolicy());
}

/** The table for a `process.arch`. Null: there is none, so no sandbox may start. */
export function seccompArch(nodeArch: string): SeccompArch | null {
  return nodeArch === 'x64' || nodeArch === 'arm64' ? nodeArch : null;
}

export function assemble(arch: SeccompArch, policy: Policy): Buffer {
  const { audit, lastOwn } = ARCHES[arch];
  const calls = callsOf(arch, policy);
  const native = [load(OFFSET.number)].concat(
    // This also refuses x32, whose numbers on x64 have bit 30 set.
    when('above', [LAST_SHARED], [answer(ENOSYS)]),
    when('above', [FIRST_SHARED - 1], lookUp(calls.shared)),
    when('above', [lastOwn], [answer(ENOSYS)]),
    lookUp(calls.own),
  );
  return encode([load(OFFSET.arch)].concat(when('equal', [audit], native), answer(KILL)));
}

/** Straight code in which every path ends in an answer, so code after a block runs only when the block was skipped. */
type Block = readonly Instruction[];

interface Instruction {
  readonly code: number;
  readonly k: number;
  /** Instructions to skip when the test holds, and when it does not. Eight bits each. */
  readonly jt: number;
  readonly jf: number;
}

interface Call {
  readonly number: number;
  readonly decision: Decision;
}

function callsOf(
  arch: SeccompArch,
  policy: Policy,
): { readonly own: readonly Call[]; readonly shared: readonly Call[] } {
  const own: Call[] = [];
  const shared: Call[] = [];
  for (const [name, decision] of Object.entries(policy) as [CallName, Decision][]) {
    const number = NUMBERS[name][arch === 'x64' ? 0 : 1];
    if (number !== null) (number < FIRST_SHARED ? own : shared).push({ number, decision });
  }
  return { own, shared };
}

/** Expects the call number in the accumulator. One answer serves all calls that share a plain verdict. */
function lookUp(calls: readonly Call[]): Block {
  let block: Instruction[] = [];
  const numbersOf = new Map<number, number[]>();
  for (const { number, decision } of calls) {
    if (typeof decision !== 'number') block = block.concat(when('equal', [number], decide(decision)));
    else if (numbersOf.get(decision)?.push(number) === undefined) numbersOf.set(decision, [number]);
  }
  for (const [verdict, numbers] of numbersOf) block = block.concat(when('equal', numbers, [answer(verdict)]));
  return block.concat(answer(ALLOW));
}

function decide(decision: Decision): Block {
  if (typeof decision === 'number') return [answer(decision)];
  const { arg, word, mask, cases, otherwise } = decision;
  let block = [load(OFFSET.args + 8 * arg + (word === 'high' ? 4 : 0))];
  if (mask !== 0xffffffff) block.push({ code: CODE.and, k: mask, jt: 0, jf: 0 });
  for (const [values, then] of cases) block = block.concat(when('equal', values, decide(then)));
  return block.concat(decide(otherwise));
}

/** Runs the block if the accumulator equals, or is above, one of the values; otherwise skips it. Keeps the accumulator. */
function when(test: 'equal' | 'above', values: readonly number[], block: Block): Block {
  // Without a test nothing would skip the block.
  if (values.length === 0) return [];
  // A test skips 255 instructions at most; a longer block is skipped by a jump of its own.
  const long: Block = block.length > 255 ? [{ code: CODE.jump, k: block.length, jt: 0, jf: 0 }] : [];
  const tests = values.map((k, at): Instruction => {
    const testsLeft = values.length - 1 - at;
    return {
      code: CODE[test],
      k,
      jt: testsLeft + long.length,
      jf: testsLeft > 0 || long.length > 0 ? 0 : block.length,
    };
  });
  return tests.concat(long, block);
}

function load(offset: number): Instruction {
  return { code: CODE.load, k: offset, jt: 0, jf: 0 };
}

function answer(verdict: number): Instruction {
  return { code: CODE.answer, k: verdict, jt: 0, jf: 0 };
}

function encode(program: Block): Buffer {
  // Typed arrays use the machine's byte order; ags and this filter support little-endian machines only.
  const words = new Uint32Array(program.length * 2);
  let at = 0;
  for (const { code, jt, jf, k } of program) {
    // A table that outgrows the format must not yield a filter that jumps elsewhere.
    if (jt > 255 || jf > 255) throw new RangeError(`A jump over ${Math.max(jt, jf)} instructions does not fit.`);
    words[at] = code | (jt << 16) | (jf << 24);
    words[at + 1] = k;
    at += 2;
  }
  return Buffer.from(words.buffer);
}

/** Classic BPF: load a word, AND, jump always, jump if equal, jump if above (unsigned), return. */
const CODE = { load: 0x20, and: 0x54, jump: 0x05, equal: 0x15, above: 0x25, answer: 0x06 } as const;

/** Offsets in `struct seccomp_data`. Both architectures are little-endian: an argument's low word comes first. */
const OFFSET = { number: 0, arch: 4, args: 16 } as const;
